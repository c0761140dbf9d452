// A machine on which nothing costs anything: for closed forms and base lines. One socket; as many cores as anyone asks.
#include "models/catalogue.h"

namespace vcpusim::machines {

MachineKind ideal() {
  return {"ideal", "every cost zero, 1024 cores, 1 GHz", "by definition", [] {
            MachineConfig m;
            m.name = "ideal";
            m.cores_per_socket = 1024;
            return m;
          }};
}

}  // namespace vcpusim::machines
