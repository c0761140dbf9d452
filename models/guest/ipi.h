// A synchronous call of one vCPU to others: a function-call IPI, or a TLB shootdown.
#pragma once

#include <cstdint>

#include "models/machine/cache_line.h"
#include "sim/time.h"

namespace vcpusim {

struct IpiCall {
  IpiCall(const Machine& machine, Duration work) : handler_work(work), line(machine) {}
  Duration handler_work;          // what each target does in its handler
  std::int64_t sent = 0;          // through hypercalls for many
  std::uint32_t outstanding = 0;  // targets that have not acknowledged
  CacheLine line;                 // on which the initiator spins until nothing is outstanding
};

}  // namespace vcpusim
