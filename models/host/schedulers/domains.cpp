#include "models/host/schedulers/domains.h"

#include <utility>

namespace vcpusim {

namespace {

// Divides `range` wherever `key` changes.
template <class Key>
std::vector<PcpuRange> divide(PcpuRange range, Key key) {
  std::vector<PcpuRange> parts;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    if (i == range.begin || key(PcpuId{i}) != key(PcpuId{i - 1})) parts.push_back({i, i});
    parts.back().end = i + 1;
  }
  return parts;
}

}  // namespace

Domains::Domains(const Machine& machine) : places_(machine.pcpus()) {
  const PcpuRange all{0, machine.pcpus()};
  const auto socket_of = [&](PcpuId pcpu) { return machine.socket_of(pcpu); };
  const auto core_of = [&](PcpuId pcpu) { return machine.core_of(pcpu); };
  const std::vector<PcpuRange> sockets = divide(all, socket_of);
  for (const PcpuRange& socket : sockets) {
    const std::vector<PcpuRange> cores = divide(socket, core_of);
    for (const PcpuRange& core : cores) {
      for (std::uint32_t i = core.begin; i < core.end; ++i) {
        places_[i].core = core;
        places_[i].socket = socket;
      }
      add(Level::kCore, core, divide(core, [](PcpuId pcpu) { return index_of(pcpu); }));
    }
    add(Level::kSocket, socket, cores);
  }
  add(Level::kMachine, all, sockets);
}

void Domains::add(Level level, PcpuRange span, std::vector<PcpuRange> groups) {
  if (groups.size() < 2) return;
  bool above_another = false;
  for (std::uint32_t i = span.begin; i < span.end; ++i) above_another = above_another || !places_[i].domains.empty();
  domains_.push_back(std::make_unique<Domain>(Domain{level, span, std::move(groups), above_another}));
  for (std::uint32_t i = span.begin; i < span.end; ++i) places_[i].domains.push_back(domains_.back().get());
}

}  // namespace vcpusim
