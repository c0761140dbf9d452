#include "models/host/assists/assists.h"

namespace vcpusim {

namespace {
template <class Params>
std::optional<Params> read(const std::map<std::string, Kind>& on, const char* name) {
  const auto at = on.find(name);
  if (at == on.end()) return std::nullopt;
  Params params;
  apply_params(at->second, [&](ParamVisitor& visitor) { params.describe(visitor); });
  return params;
}
}  // namespace

Assists::Assists(const std::map<std::string, Kind>& on)
    : ple(read<PleParams>(on, "ple")),
      directed_yield(read<DirectedYieldParams>(on, "directed_yield").value_or(DirectedYieldParams{})),
      hint(read<HintParams>(on, "hint")),
      halt_poll(read<HaltPollParams>(on, "halt_poll")),
      steal_clock(read<StealClockParams>(on, "steal_clock")),
      pv_tlb_flush(read<PvTlbFlushParams>(on, "pv_tlb_flush")),
      pv_ipi(read<PvIpiParams>(on, "pv_ipi")) {}

}  // namespace vcpusim
