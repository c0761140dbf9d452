// SMT: threads of a core that are busy at the same time share its speed.
#pragma once

#include <cstdint>
#include <vector>

#include "models/machine/machine.h"

namespace vcpusim {

// Whoever executes on a pCPU.
class Occupant {
 public:
  // From now on its core is (or is not) shared with a busy sibling.
  virtual void core_shared(bool shared) = 0;

 protected:
  ~Occupant() = default;
};

class Cores {
 public:
  explicit Cores(const Machine& machine) : machine_(machine), occupants_(machine.pcpus()) {}

  // `occupant` executes on `pcpu` from now on; null: nobody does.
  void occupy(PcpuId pcpu, Occupant* occupant);

 private:
  const Machine& machine_;
  std::vector<Occupant*> occupants_;
};

}  // namespace vcpusim
