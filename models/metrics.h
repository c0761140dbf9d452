// What a run is reduced to: the metrics of the results format, by dotted path.
#pragma once

#include <memory>
#include <vector>

#include "models/config.h"
#include "models/guest/vm.h"
#include "models/host/host.h"
#include "models/simulation.h"
#include "sim/engine.h"

namespace vcpusim {

// Everything from `since` (the end of the warm-up) to the present.
// `host` is null if all guests are native.
Metrics collect_metrics(const SimulationConfig& config, const std::vector<std::unique_ptr<Vm>>& vms, const Host* host,
                        const Engine& engine, SimTime since);

}  // namespace vcpusim
