#include "models/simulation.h"

#include <algorithm>
#include <utility>

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
      : config_(config),
        trace_(engine_, trace),
        machine_(config.host.machine, config.host.pcpus, engine_),
        cores_(machine_),
        assists_(config.host.assists) {
    std::vector<Vcpu*> vcpus;
    std::vector<SchedulableVcpu> descriptions;
    std::vector<QuotaConfig> quotas;
    std::uint32_t native_pcpus = 0;
    Vm::Numbers next;
    for (const VmConfig& vm : config.vms) {
      for (std::int64_t copy = 0; copy < vm.copies; ++copy) {
        const std::string name = vm.copies == 1 ? vm.name : vm.name + "-" + std::to_string(copy);
        vms_.push_back(std::make_unique<Vm>(name, vm, config.seed, next, machine_, assists_, trace_, *this));
        next.vcpu += static_cast<std::uint32_t>(vm.vcpus);
        next.lock += static_cast<std::uint32_t>(vm.guest.locks.size());
        const auto number = static_cast<std::uint32_t>(quotas.size());
        if (!vm.native) quotas.push_back(vm.quota);
        for (const auto& vcpu : vms_.back()->vcpus()) {
          if (vm.native) {
            SIM_CHECK(native_pcpus < machine_.pcpus(), "native guests need a pCPU for each vCPU");
            vcpu->run_natively_on(PcpuId{native_pcpus++}, cores_);
          } else {
            const std::uint32_t i = index_of(vcpu->id());
            vcpus.push_back(vcpu.get());
            descriptions.push_back({number, i, vm.weight, affinity_of(vm.affinity, i, machine_.pcpus()), vm.cap});
          }
        }
        for (const TaskConfig& task : vm.tasks) {
          unfinished_ += task.count;
          next.task += static_cast<std::uint32_t>(task.count);
        }
      }
    }
    SIM_CHECK(native_pcpus == 0 || vcpus.empty(), "native and virtual machines cannot share a host");
    if (!vcpus.empty()) {
      host_ = std::make_unique<Host>(config.host, machine_, cores_, config.seed, vcpus, std::move(descriptions), quotas,
                                     assists_, trace_);
      for (Vcpu* const vcpu : vcpus) vcpu->run_under(*host_);
    }
  }

  RunResult run() {
    start();
    const SimTime warm = kTimeZero + config_.warmup;
    if (config_.warmup > Duration::zero()) {
      run_until(warm);
      for (const auto& vm : vms_) vm->reset_statistics();
      if (host_) host_->reset_statistics();
    }
    const bool to_the_end = !config_.stop.at.has_value();
    const SimTime limit = kTimeZero + (to_the_end ? config_.stop.at_most : *config_.stop.at);
    run_until(limit);

    RunResult result;
    using Ended = RunResult::Ended;
    result.ended = !why_stuck_.empty() ? Ended::kDeadlock
                   : unfinished_ == 0  ? Ended::kWorkloadsDone
                   : to_the_end        ? Ended::kAtMost
                                       : Ended::kAtStop;
    result.why = why_stuck_;
    result.sim_time = engine_.now() - kTimeZero;
    result.metrics = collect_metrics(config_, vms_, host_.get(), engine_, std::min(warm, engine_.now()));
    return result;
  }

  void cannot_go_on(const std::string& why) override {
    why_stuck_ = why;
    engine_.stop();
  }
  void task_finished() override {
    if (--unfinished_ == 0 && !config_.stop.at) engine_.stop();
  }

 private:
  void start() {
    std::vector<Task*> order;
    for (const auto& vm : vms_) vm->start_tasks(order);
    if (config_.random_start && vms_.size() > 1) {
      RandomStream random(config_.seed, "host", "start");
      for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    }
    for (Task* const task : order) task->vcpu().enqueue(*task, nullptr);
    for (const auto& vm : vms_) vm->start_clocks();
  }

  // Stops early when all tasks have ended, or when none can ever go on. Whether any can is looked at now and then,
  // between events, so that looking changes nothing.
  void run_until(SimTime limit) {
    constexpr Duration kBetweenLooks = std::chrono::seconds(1);
    while (why_stuck_.empty() && engine_.now() < limit && (unfinished_ > 0 || config_.stop.at)) {
      engine_.run_until(std::min(limit, engine_.now() + kBetweenLooks));
      if (why_stuck_.empty()) look_for_standstill();
    }
  }

  void look_for_standstill() {
    std::string reasons;
    for (const auto& vm : vms_) {
      bool unfinished = false;
      for (const Vm::TaskGroup& group : vm->task_groups()) {
        for (const auto& task : group.tasks) unfinished = unfinished || !task->finished();
      }
      if (!unfinished) continue;
      const std::vector<std::string> stuck = vm->standstill();
      if (stuck.empty()) return;
      for (const std::string& reason : stuck) reasons += (reasons.empty() ? "" : "; ") + reason;
    }
    why_stuck_ = std::move(reasons);
  }

  const SimulationConfig& config_;
  Engine engine_;
  Tracer trace_;
  Machine machine_;
  Cores cores_;
  Assists assists_;
  std::unique_ptr<Host> host_;  // null: all guests are native
  std::vector<std::unique_ptr<Vm>> vms_;
  std::int64_t unfinished_ = 0;
  std::string why_stuck_;
};

Simulation::Simulation(const SimulationConfig& config, TraceSink* trace)
    : world_(std::make_unique<World>(config, trace)) {}
Simulation::~Simulation() = default;
RunResult Simulation::run() { return world_->run(); }

}  // namespace vcpusim
