#include "models/machine/cores.h"

#include <algorithm>

namespace vcpusim {

void Cores::occupy(PcpuId pcpu, Occupant* occupant) {
  Occupant*& place = occupants_[index_of(pcpu)];
  const bool was_busy = place != nullptr;
  place = occupant;
  const auto threads = static_cast<std::uint32_t>(machine_.config().threads_per_core);
  if (threads == 1) return;
  const std::uint32_t first = index_of(pcpu) / threads * threads;
  const std::uint32_t end = std::min(first + threads, machine_.pcpus());
  std::uint32_t busy = 0;
  for (std::uint32_t i = first; i < end; ++i) busy += occupants_[i] != nullptr ? 1 : 0;
  if (occupant != nullptr) occupant->core_shared(busy > 1);
  if (was_busy == (occupant != nullptr)) return;
  for (std::uint32_t i = first; i < end; ++i) {
    if (occupants_[i] != nullptr && i != index_of(pcpu)) occupants_[i]->core_shared(busy > 1);
  }
}

}  // namespace vcpusim
