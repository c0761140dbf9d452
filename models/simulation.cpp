#include "models/simulation.h"

#include <algorithm>

#include "models/guest/vm.h"
#include "models/machine/machine.h"
#include "models/metrics.h"
#include "sim/check.h"
#include "sim/engine.h"

namespace vcpusim {

class Simulation::World final : public Vm::Observer {
 public:
  World(const SimulationConfig& config, TraceSink* trace)
      : config_(config), trace_(trace), machine_(config.host.machine, config.host.pcpus, engine_) {
    for (const VmConfig& vm : config.vms) {
      vms_.push_back(std::make_unique<Vm>(vm, config.seed, machine_, *this));
      for (const TaskConfig& task : vm.tasks) unfinished_ += task.count;
    }
    std::uint32_t next_pcpu = 0;
    for (const auto& vm : vms_) {
      for (const auto& vcpu : vm->vcpus()) {
        SIM_CHECK(next_pcpu < machine_.pcpus(), "native guests need a pCPU for each vCPU");
        vcpu->run_natively_on(PcpuId(next_pcpu++));
      }
    }
  }

  RunResult run() {
    for (const auto& vm : vms_) vm->start();
    const SimTime warm = kTimeZero + config_.warmup;
    if (config_.warmup > Duration::zero()) {
      engine_.run_until(warm);
      for (const auto& vm : vms_) vm->reset_statistics();
    }
    const bool to_the_end = !config_.stop.at.has_value();
    const SimTime limit = kTimeZero + (to_the_end ? config_.stop.at_most : *config_.stop.at);
    if (unfinished_ > 0 && limit > engine_.now()) engine_.run_until(limit);

    RunResult result;
    using Ended = RunResult::Ended;
    result.ended = unfinished_ == 0 ? Ended::kWorkloadsDone : to_the_end ? Ended::kAtMost : Ended::kAtStop;
    result.sim_time = engine_.now() - kTimeZero;
    result.metrics = collect_metrics(config_, vms_, engine_, std::min(warm, engine_.now()));
    return result;
  }

  void task_finished() override {
    if (--unfinished_ == 0 && !config_.stop.at) engine_.stop();
  }

 private:
  const SimulationConfig& config_;
  TraceSink* trace_;
  Engine engine_;
  Machine machine_;
  std::vector<std::unique_ptr<Vm>> vms_;
  std::int64_t unfinished_ = 0;
};

Simulation::Simulation(const SimulationConfig& config, TraceSink* trace)
    : world_(std::make_unique<World>(config, trace)) {}
Simulation::~Simulation() = default;
RunResult Simulation::run() { return world_->run(); }

}  // namespace vcpusim
