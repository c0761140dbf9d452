#include "models/machine/machine.h"

#include <cmath>

#include "sim/check.h"

namespace vcpusim {

Machine::Machine(const MachineConfig& config, std::int64_t pcpus, Engine& engine)
    : config_(config), engine_(engine), smt_speed_(std::llround(config.costs.smt_speed * kPerMille)) {
  SIM_CHECK(pcpus >= 1 && pcpus <= config.logical_cpus(), "more pCPUs than the machine has");
  places_.reserve(static_cast<std::size_t>(pcpus));
  for (std::int64_t cpu = 0; cpu < pcpus; ++cpu) {
    const std::int64_t core = cpu / config.threads_per_core;
    const std::int64_t socket = core / config.cores_per_socket;
    places_.push_back({static_cast<std::uint32_t>(socket), static_cast<std::uint32_t>(core),
                       static_cast<std::uint32_t>(socket / config.directly_linked_sockets)});
    // The first pCPU is in the first core, socket and group: none is farther from any other than the last one from it.
    diameter_ = distance(PcpuId{0}, PcpuId{static_cast<std::uint32_t>(cpu)});
  }
  uniform_ = pcpus > 1 && diameter_ == distance(PcpuId{0}, PcpuId{1});
  const auto divide = [&](Duration whole) {
    const Duration to_holder{static_cast<std::int64_t>(static_cast<double>(whole.count()) * config.costs.snoop_share)};
    return Transfer{to_holder, whole - to_holder};
  };
  const auto fill = [&](Distance distance, const LineCosts& costs) {
    const auto i = static_cast<std::size_t>(distance);
    load_[i] = divide(costs.load);
    load_shared_[i] = costs.load_shared;
    store_[i] = divide(costs.store);
  };
  fill(Distance::kSameCore, config.costs.same_core);
  fill(Distance::kSameSocket, config.costs.same_socket);
  fill(Distance::kOneHop, config.costs.one_hop);
  fill(Distance::kTwoHops, config.costs.two_hops);
}

}  // namespace vcpusim
