#include "models/simulation.h"

#include <algorithm>

#include "models/guest/vm.h"
#include "models/host/host.h"
#include "models/machine/cores.h"
#include "models/machine/machine.h"
#include "models/metrics.h"
#include "sim/check.h"
#include "sim/engine.h"

namespace vcpusim {

namespace {

PcpuSet affinity_of(const AffinityConfig& config, std::uint32_t vcpu, std::uint32_t pcpus) {
  PcpuSet set;
  switch (config.rule) {
    case AffinityConfig::Rule::kAny:
      return PcpuSet::all(pcpus);
    case AffinityConfig::Rule::kOneToOne:
      set.insert(PcpuId{vcpu % pcpus});
      return set;
    case AffinityConfig::Rule::kLists:
      for (const std::int64_t pcpu : config.lists[vcpu]) set.insert(PcpuId{static_cast<std::uint32_t>(pcpu)});
      return set;
  }
  return set;
}

}  // namespace

class Simulation::World final : public Vm::Observer {
 public:
  World(const SimulationConfig& config, TraceSink* trace)
      : config_(config), trace_(trace), machine_(config.host.machine, config.host.pcpus, engine_), cores_(machine_) {
    std::vector<Vcpu*> vcpus;
    std::vector<SchedulableVcpu> descriptions;
    std::vector<QuotaConfig> quotas;
    std::uint32_t native_pcpus = 0;
    for (const VmConfig& vm : config.vms) {
      for (std::int64_t copy = 0; copy < vm.copies; ++copy) {
        const std::string name = vm.copies == 1 ? vm.name : vm.name + "-" + std::to_string(copy);
        vms_.push_back(
            std::make_unique<Vm>(name, vm, config.seed, static_cast<std::uint32_t>(vcpus.size()), machine_, *this));
        const auto number = static_cast<std::uint32_t>(quotas.size());
        if (!vm.native) quotas.push_back(vm.quota);
        for (const auto& vcpu : vms_.back()->vcpus()) {
          if (vm.native) {
            SIM_CHECK(native_pcpus < machine_.pcpus(), "native guests need a pCPU for each vCPU");
            vcpu->run_natively_on(PcpuId{native_pcpus++}, cores_);
          } else {
            const std::uint32_t i = index_of(vcpu->id());
            vcpus.push_back(vcpu.get());
            descriptions.push_back(
                {number, i, vm.weight, affinity_of(vm.affinity, i, machine_.pcpus()), vm.quota.cpus});
          }
        }
        for (const TaskConfig& task : vm.tasks) unfinished_ += task.count;
      }
    }
    SIM_CHECK(native_pcpus == 0 || vcpus.empty(), "native and virtual machines cannot share a host");
    if (!vcpus.empty()) {
      host_ =
          std::make_unique<Host>(config.host, machine_, cores_, config.seed, vcpus, std::move(descriptions), quotas);
      for (Vcpu* const vcpu : vcpus) vcpu->run_under(*host_);
    }
  }

  RunResult run() {
    for (const auto& vm : vms_) vm->start();
    const SimTime warm = kTimeZero + config_.warmup;
    if (config_.warmup > Duration::zero()) {
      engine_.run_until(warm);
      for (const auto& vm : vms_) vm->reset_statistics();
      if (host_) host_->reset_statistics();
    }
    const bool to_the_end = !config_.stop.at.has_value();
    const SimTime limit = kTimeZero + (to_the_end ? config_.stop.at_most : *config_.stop.at);
    if (unfinished_ > 0 && limit > engine_.now()) engine_.run_until(limit);

    RunResult result;
    using Ended = RunResult::Ended;
    result.ended = unfinished_ == 0 ? Ended::kWorkloadsDone : to_the_end ? Ended::kAtMost : Ended::kAtStop;
    result.sim_time = engine_.now() - kTimeZero;
    result.metrics = collect_metrics(config_, vms_, host_.get(), engine_, std::min(warm, engine_.now()));
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
  Cores cores_;
  std::unique_ptr<Host> host_;  // null: all guests are native
  std::vector<std::unique_ptr<Vm>> vms_;
  std::int64_t unfinished_ = 0;
};

Simulation::Simulation(const SimulationConfig& config, TraceSink* trace)
    : world_(std::make_unique<World>(config, trace)) {}
Simulation::~Simulation() = default;
RunResult Simulation::run() { return world_->run(); }

}  // namespace vcpusim
