// Laws that hold in every scenario, over random small ones: what is random is everything that a scenario can say.
//
// A failing scenario is shrunk and printed in full; RC_PARAMS="seed=..." in the environment tries others.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "models/locks/lock.h"
#include "models/machine/machine.h"
#include "sim/check.h"
#include "tests/support/simulate.h"

namespace vcpusim::testing {
namespace {

using namespace std::chrono_literals;

// ---- random scenarios ------------------------------------------------------------------------------------------

// A scenario in small numbers, which shrink towards nothing in particular happening.
struct Step {
  int kind = 0;    // of kStepKinds
  int length = 0;  // of what it does
  int object = 0;  // lock, number of targets, branch weight
  bool flag = false;
};

struct Guest {
  int vcpus = 1;
  int copies = 1;
  int tasks = 1;
  int repeats = 1;
  int weight = 1;  // times 512
  int quota = 0;   // tenths of a pCPU for each vCPU; 0: none
  int tick = 0;    // index into kTicks
  bool tickless = true;
  int timeslice = 1;  // ms
  int affinity = 0;   // 0: any, 1: one to one, 2: lists drawn from `lists`
  std::vector<int> lists;
  std::vector<int> locks;  // kinds, of two locks
  std::vector<Step> steps;
};

struct Scenario {
  int scheduler = 0;
  int generation = 0;  // of eevdf
  int pcpus = 1;
  int costs = 0;    // 0: ideal, 1: generic, 2: generic with SMT
  int assists = 0;  // a bit for each
  std::uint64_t seed = 1;
  std::vector<Guest> guests;
};

constexpr std::array kStepNames{"user",    "kernel", "lock", "lock irqs off", "sleep",    "io",
                                "barrier", "yield",  "ipi",  "choose",        "lock, do", "uniform user"};
constexpr std::array kGenerations{"6.6", "6.12", "6.14", "6.17", "6.19"};
constexpr std::array kTicks{0us, 250us, 1000us, 4000us};

rc::Gen<int> small(int from, int to) { return rc::gen::inRange(from, to + 1); }

rc::Gen<Step> steps() {
  return rc::gen::build<Step>(rc::gen::set(&Step::kind, small(0, static_cast<int>(kStepNames.size()) - 1)),
                              rc::gen::set(&Step::length, small(0, 1'000)), rc::gen::set(&Step::object, small(0, 3)),
                              rc::gen::set(&Step::flag, rc::gen::arbitrary<bool>()));
}

rc::Gen<Guest> guests() {
  return rc::gen::build<Guest>(
      rc::gen::set(&Guest::vcpus, small(1, 4)), rc::gen::set(&Guest::copies, small(1, 3)),
      rc::gen::set(&Guest::tasks, small(1, 6)), rc::gen::set(&Guest::repeats, small(1, 12)),
      rc::gen::set(&Guest::weight, small(1, 4)),
      rc::gen::set(&Guest::quota, rc::gen::oneOf(rc::gen::just(0), rc::gen::just(0), small(2, 12))),
      rc::gen::set(&Guest::tick, small(0, static_cast<int>(kTicks.size()) - 1)),
      rc::gen::set(&Guest::tickless, rc::gen::arbitrary<bool>()), rc::gen::set(&Guest::timeslice, small(1, 5)),
      rc::gen::set(&Guest::affinity, small(0, 2)),
      rc::gen::set(&Guest::lists, rc::gen::container<std::vector<int>>(4, small(1, 255))),
      rc::gen::set(&Guest::locks, rc::gen::container<std::vector<int>>(2, small(0, 63))),
      rc::gen::set(&Guest::steps, rc::gen::mapcat(small(1, 6), [](int n) {
        return rc::gen::container<std::vector<Step>>(static_cast<std::size_t>(n), steps());
      })));
}

rc::Gen<Scenario> scenarios() {
  return rc::gen::build<Scenario>(
      rc::gen::set(&Scenario::scheduler, small(0, static_cast<int>(scheduler_kinds().size()) - 1)),
      rc::gen::set(&Scenario::generation, small(0, static_cast<int>(kGenerations.size()) - 1)),
      rc::gen::set(&Scenario::pcpus, small(1, 5)), rc::gen::set(&Scenario::costs, small(0, 2)),
      rc::gen::set(&Scenario::assists, small(0, (1 << assist_kinds().size()) - 1)),
      rc::gen::set(&Scenario::seed, rc::gen::inRange<std::uint64_t>(1, 1'000)),
      rc::gen::set(&Scenario::guests, rc::gen::mapcat(small(1, 3), [](int n) {
        return rc::gen::container<std::vector<Guest>>(static_cast<std::size_t>(n), guests());
      })));
}

// Lock 0 is of any kind. Lock 1 is taken inside of lock 0 and with interrupts disabled, where nobody may sleep.
std::string lock_kind_of(std::size_t lock, int number) {
  std::vector<std::string> names;
  for (const LockKind& kind : lock_kinds()) {
    if (lock == 0 || (kind.name != "mutex" && kind.name != "rcu")) names.emplace_back(kind.name);
  }
  return names[static_cast<std::size_t>(number) % names.size()];
}

std::shared_ptr<const Operation> operation_of(const Step& step) {
  const Duration length = step.length * Duration(1us);
  const auto lock = static_cast<std::size_t>(step.object % 2);
  switch (step.kind) {
    case 0:
      return user(exponential(length));
    case 1:
      return kernel(always(length));
    case 2:
      return hold(lock, exponential(length / 4));
    case 3:
      return hold_irqs_off(1, exponential(length / 4));
    case 4:
      return sleep(exponential(length));
    case 5:
      return io(always(length));
    case 6:
      return barrier(0);
    case 7:
      return yield();
    case 8:
      return ipi(1 + step.object, exponential(length / 10));
    case 9:
      return choose({{1 + step.object, {user(exponential(length))}}, {1, {sleep(always(length))}}});
    case 10:
      // Nested, the second lock only in the first: no order that could deadlock.
      return hold(
          0, {kernel(always(length / 8)), step.flag ? hold(1, exponential(length / 8)) : user(always(length / 8))});
    default:
      return user(Distribution::uniform(length / 2, length));
  }
}

SimulationConfig config_of(const Scenario& scenario) {
  SimulationConfig config =
      host(std::string(scheduler_kinds()[static_cast<std::size_t>(scenario.scheduler)].name), scenario.pcpus, {});
  config.seed = scenario.seed;
  config.stop.at_most = 60s;
  // Turns of 100 ms would make most scenarios wait for the end of one.
  if (config.host.scheduler.name == "round_robin") config.host.scheduler.params["quantum"] = Duration(5ms);
  if (scenario.costs > 0) config.host.machine = find_machine_kind("generic")->make();
  if (scenario.costs == 2) {
    config.host.machine.threads_per_core = 2;
    config.host.machine.cores_per_socket = 2;
    config.host.machine.costs.smt_speed = 0.65;
  }
  for (std::size_t i = 0; i < assist_kinds().size(); ++i) {
    const std::string name(assist_kinds()[i].name);
    if ((scenario.assists >> i & 1) != 0) config.host.assists[name] = {name, {}};
  }
  if (config.host.scheduler.name == "eevdf") {
    config.host.scheduler.params["generation"] =
        std::string(kGenerations[static_cast<std::size_t>(scenario.generation)]);
  }
  for (const Guest& g : scenario.guests) {
    VmConfig vm = guest("g" + std::to_string(config.vms.size()), g.vcpus, {});
    vm.copies = g.copies;
    vm.weight = 512 * g.weight;
    vm.quota = {.cpus = g.quota * 0.1 * static_cast<double>(g.vcpus), .period = 10ms, .slice = 1ms};
    if (g.affinity == 1) vm.affinity.rule = AffinityConfig::Rule::kOneToOne;
    if (g.affinity == 2) {
      vm.affinity.rule = AffinityConfig::Rule::kLists;
      for (std::size_t i = 0; i < static_cast<std::size_t>(g.vcpus); ++i) {
        std::vector<std::int64_t>& list = vm.affinity.lists.emplace_back();
        for (std::int64_t pcpu = 0; pcpu < scenario.pcpus; ++pcpu) {
          if ((g.lists[i] >> pcpu & 1) != 0) list.push_back(pcpu);
        }
        if (list.empty()) list.push_back(g.lists[i] % scenario.pcpus);
      }
    }
    vm.guest.tick = kTicks[static_cast<std::size_t>(g.tick)];
    vm.guest.tickless_idle = g.tickless;
    vm.guest.timeslice = g.timeslice * Duration(1ms);
    vm.guest.locks = {{"l", {lock_kind_of(0, g.locks[0]), {}}}, {"m", {lock_kind_of(1, g.locks[1]), {}}}};
    vm.guest.barriers[0].parties = g.tasks;
    Program body;
    for (const Step& step : g.steps) body.push_back(operation_of(step));
    vm.tasks[0].count = g.tasks;
    vm.tasks[0].program = {repeat(g.repeats, std::move(body))};
    config.vms.push_back(std::move(vm));
  }
  return config;
}

std::ostream& operator<<(std::ostream& out, const Scenario& s) {
  const SimulationConfig config = config_of(s);
  out << "host " << config.host.scheduler.name;
  for (const auto& [name, value] : config.host.scheduler.params) {
    if (const auto* text = std::get_if<std::string>(&value)) out << " " << *text;
  }
  out << ", " << s.pcpus << " pCPUs, machine "
      << std::array{"ideal", "generic", "generic with SMT"}[static_cast<std::size_t>(s.costs)] << ", seed " << s.seed
      << ", assists";
  for (const auto& [name, assist] : config.host.assists) out << " " << name;
  out << "\n";
  for (std::size_t i = 0; i < s.guests.size(); ++i) {
    const Guest& g = s.guests[i];
    const VmConfig& vm = config.vms[i];
    out << "  " << vm.name << ": " << g.copies << " x " << g.vcpus << " vCPUs, weight " << vm.weight << ", quota "
        << vm.quota.cpus << ", tick " << to_microseconds(vm.guest.tick) << " us" << (g.tickless ? "" : " always")
        << ", slice " << g.timeslice << " ms, locks " << vm.guest.locks[0].kind.name << " "
        << vm.guest.locks[1].kind.name << ", affinity " << std::array{"any", "one to one", ""}[std::size_t(g.affinity)];
    for (const auto& list : vm.affinity.lists) {
      out << "{";
      for (const std::int64_t pcpu : list) out << pcpu;
      out << "}";
    }
    out << "\n    " << g.tasks << " tasks, " << g.repeats << " times:";
    for (const Step& step : g.steps) {
      out << " [" << kStepNames[std::size_t(step.kind)] << " " << step.length << " us, " << step.object
          << (step.flag ? " *" : "") << "]";
    }
    out << "\n";
  }
  return out;
}

// ---- laws ------------------------------------------------------------------------------------------------------

// What the trace says, followed record by record. Each failed law is a sentence in `broken`.
class Auditor {
 public:
  explicit Auditor(const SimulationConfig& config) : pcpus_(std::size_t(config.host.pcpus)) {
    std::uint32_t lock = 0;
    for (const VmConfig& vm : config.vms) {
      for (std::int64_t copy = 0; copy < vm.copies; ++copy) {
        for (std::int64_t i = 0; i < vm.vcpus; ++i) {
          Vcpu_ v;
          for (std::int64_t pcpu = 0; pcpu < config.host.pcpus; ++pcpu) {
            const bool allowed = vm.affinity.rule == AffinityConfig::Rule::kAny ||
                                 (vm.affinity.rule == AffinityConfig::Rule::kOneToOne
                                      ? i % config.host.pcpus == pcpu
                                      : std::ranges::count(vm.affinity.lists[std::size_t(i)], pcpu) > 0);
            if (allowed) v.allowed.insert(static_cast<std::uint32_t>(pcpu));
          }
          v.limited = vm.quota.cpus > 0;
          vcpus_.push_back(std::move(v));
        }
        for (const LockConfig& l : vm.guest.locks) {
          const LockKind* const kind = find_lock_kind(l.kind.name);
          Engine engine;
          const Machine machine(config.host.machine, config.host.pcpus, engine);
          const std::vector<std::unique_ptr<Vcpu>> none;
          LockCounters counters;
          LockSite site{.machine = machine,
                        .vcpus = none,
                        .vcpu_count = std::size_t(vm.vcpus),
                        .native = false,
                        .counters = counters};
          locks_[lock++].fair = kind->make(l.kind, site)->fair();
        }
      }
    }
  }

  void follow(const std::vector<TraceRecord>& trace, SimTime end) {
    for (const TraceRecord& r : trace) {
      if (r.time < now_) broken("time goes back");
      advance(r.time);
      step(r);
    }
    advance(end);
  }

  const std::string& broken() const { return broken_; }
  Duration longest_idle_beside_ready() const { return longest_idle_; }
  std::size_t preemptions() const { return preemptions_; }
  // Acquisitions of locks that somebody else had requested before, and those of locks that promise to be fair.
  std::size_t overtakings() const { return overtakings_; }
  std::size_t overtakings_of_fair() const { return overtakings_of_fair_; }
  Duration ran() const { return ran_; }

 private:
  struct Vcpu_ {
    std::set<std::uint32_t> allowed;
    bool limited = false;
    bool ready = false;
    std::optional<std::uint32_t> on;
  };
  struct Pcpu_ {
    std::optional<std::uint32_t> running;
    Duration idle_beside_ready{};
  };
  struct Lock_ {
    bool fair = false;
    std::optional<std::uint32_t> owner;
    SimTime last_request{SimTime::min()};
  };

  void broken(const std::string& law) {
    if (broken_.empty()) broken_ = law + " at " + std::to_string((now_ - kTimeZero).count()) + " ps";
  }

  void advance(SimTime to) {
    const Duration passed = to - now_;
    now_ = to;
    for (std::uint32_t p = 0; p < pcpus_.size(); ++p) {
      Pcpu_& pcpu = pcpus_[p];
      if (pcpu.running) ran_ += passed;
      const bool wanted = !pcpu.running && std::ranges::any_of(vcpus_, [p](const Vcpu_& v) {
        return v.ready && !v.limited && v.allowed.contains(p);
      });
      pcpu.idle_beside_ready = wanted ? pcpu.idle_beside_ready + passed : Duration::zero();
      longest_idle_ = std::max(longest_idle_, pcpu.idle_beside_ready);
    }
  }

  void step(const TraceRecord& r) {
    switch (static_cast<TraceKind>(r.kind)) {
      case TraceKind::kDispatch: {
        Vcpu_& v = vcpus_.at(r.subject);
        Pcpu_& p = pcpus_.at(r.object);
        if (v.on) broken("a vCPU runs on two pCPUs");
        if (p.running) broken("two vCPUs run on one pCPU");
        if (!v.allowed.contains(r.object)) broken("a vCPU runs outside of its affinity");
        v.on = r.object;
        v.ready = false;
        p.running = r.subject;
        break;
      }
      case TraceKind::kDeschedule: {
        Vcpu_& v = vcpus_.at(r.subject);
        if (v.on != r.object) broken("a vCPU leaves a pCPU that it does not run on");
        pcpus_.at(r.object).running.reset();
        v.on.reset();
        v.ready = static_cast<HostState>(r.value) == HostState::kReady;
        if (v.ready) ++preemptions_;
        break;
      }
      case TraceKind::kWake: {
        Vcpu_& v = vcpus_.at(r.subject);
        if (v.on || (v.ready && !v.limited)) broken("a vCPU is woken that is awake");
        v.ready = true;
        break;
      }
      case TraceKind::kLockAcquired: {
        Lock_& lock = locks_.at(r.object);
        if (lock.owner) broken("a lock has two owners");
        lock.owner = r.subject;
        const SimTime requested = now_ - Duration(r.value);
        if (requested < lock.last_request) ++(lock.fair ? overtakings_of_fair_ : overtakings_);
        lock.last_request = std::max(lock.last_request, requested);
        break;
      }
      case TraceKind::kLockReleased: {
        Lock_& lock = locks_.at(r.object);
        if (lock.owner != r.subject) broken("a lock is released by another than its owner");
        lock.owner.reset();
        break;
      }
      default:
        break;
    }
  }

  std::vector<Vcpu_> vcpus_;
  std::vector<Pcpu_> pcpus_;
  std::map<std::uint32_t, Lock_> locks_;
  SimTime now_ = kTimeZero;
  std::string broken_;
  Duration longest_idle_{};
  Duration ran_{};
  std::size_t preemptions_ = 0;
  std::size_t overtakings_ = 0;
  std::size_t overtakings_of_fair_ = 0;
};

// What the random scenarios have had in them, so that no law is kept in an empty world.
struct Seen {
  std::size_t preemptions = 0;
  std::size_t contended = 0;
  std::size_t holder_preemptions = 0;
  std::size_t reserved = 0;
  std::size_t coalesced = 0;
  std::size_t limited = 0;
  std::size_t overtakings = 0;
  std::size_t migrations = 0;
};

std::string name_of(RunResult::Ended ended) {
  return std::array{"at stop", "done", "at most", "deadlock"}[static_cast<std::size_t>(ended)];
}

// Longest time for which a pCPU may be idle beside a vCPU that is ready for it, by scheduler; absent: no such promise.
std::optional<Duration> balancing_rule(const std::string& scheduler) {
  // To wake an idle pCPU takes 5 us; it may find its work taken, while others wait by then.
  if (scheduler == "round_robin" || scheduler == "credit") return Duration(20us);
  if (scheduler == "cfs" || scheduler == "eevdf") return Duration(32ms);  // some ticks of 4 ms
  return std::nullopt;
}

void check_accounts(const SimulationConfig& config, const Results& r, const Auditor& auditor, Seen& seen) {
  Duration on_pcpu{};
  for (const VmConfig& vm : config.vms) {
    const std::string path = "vms." + vm.name + ".";
    Duration all{};
    for (const std::string activity : {"user", "system", "hold", "spin", "overhead", "steal", "halted", "idle"}) {
      const Duration time = r.time(path + "time_s." + activity);
      RC_ASSERT(time >= Duration::zero());
      all += time;
      if (activity != "steal" && activity != "halted" && activity != "idle") on_pcpu += time;
    }
    RC_ASSERT(all == vm.vcpus * vm.copies * r.run().sim_time);
    if (vm.guest.tick > Duration::zero()) {
      RC_ASSERT(r.count(path + "clock.expected") ==
                r.count(path + "clock.delivered") + r.count(path + "clock.coalesced"));
      seen.coalesced += r.count(path + "clock.coalesced") > 0 ? 1 : 0;
    }
    for (const LockConfig& lock : vm.guest.locks) {
      const std::string l = path + "locks." + lock.name + ".";
      RC_ASSERT(r.count(l + "contended") <= r.count(l + "acquisitions"));
      RC_ASSERT(r.number(l + "idle_reserved_s") >= 0);
      RC_ASSERT(r.number(l + "holder_preempted_s") >= 0);
      RC_ASSERT(r.number(l + "idle_reserved_s") <= to_seconds(r.run().sim_time) * static_cast<double>(vm.copies));
      seen.contended += r.count(l + "contended") > 0 ? 1 : 0;
      seen.holder_preemptions += r.count(l + "holder_preemptions") > 0 ? 1 : 0;
      seen.reserved += r.number(l + "idle_reserved_s") > 0 ? 1 : 0;
    }
    seen.limited += r.number(path + "percent.limited") > 0 ? 1 : 0;
  }
  RC_ASSERT(on_pcpu == auditor.ran());
}

void check_laws(const Scenario& scenario, Seen& seen) {
  const SimulationConfig config = config_of(scenario);
  if (config.host.scheduler.name == "gang") {
    // A VM that is too wide for its pCPUs runs in pieces. With a quota for less than a slot, the same piece can use all
    // of it in each period while the others, for whom it spins, get nothing.
    RC_PRE(std::ranges::none_of(
        scenario.guests, [&](const Guest& g) { return g.quota > 0 && (g.vcpus > scenario.pcpus || g.affinity == 2); }));
  }
  try {
    const Results r = simulate(config);
    const std::string ended = name_of(r.run().ended);
    Auditor auditor(config);
    auditor.follow(r.trace(), r.end());
    if (!auditor.broken().empty()) RC_FAIL(auditor.broken());
    check_accounts(config, r, auditor, seen);
    if (const std::optional<Duration> rule = balancing_rule(config.host.scheduler.name)) {
      if (auditor.longest_idle_beside_ready() > *rule) {
        RC_FAIL("a pCPU was idle beside a ready vCPU for " +
                std::to_string(milliseconds(auditor.longest_idle_beside_ready())) + " ms");
      }
    }
    // No wake-up is lost: there is no order of locks in these programs that could deadlock.
    if (ended != "done") RC_FAIL("ended " + ended + ": " + r.run().why);
    seen.preemptions += auditor.preemptions();
    seen.overtakings += auditor.overtakings();
    seen.migrations += static_cast<std::size_t>(r.count("host.migrations"));
  } catch (const InvariantError& error) {
    RC_FAIL(error.what());
  }
}

void check_repeats(const Scenario& scenario) {
  const SimulationConfig config = config_of(scenario);
  const Results first = simulate(config);
  Simulation untraced(config, nullptr);
  const RunResult again = untraced.run();
  RC_ASSERT(first.metrics() == again.metrics);
  RC_ASSERT(first.run().sim_time == again.sim_time);
}

// Fair locks serve in the order of arrival at the lock word. That is the order of the requests if nothing lies between
// the two: no cost, no interrupt, no other task, and a pCPU for each vCPU.
void check_order(Scenario scenario, std::size_t& contended, std::size_t& overtakings) {
  scenario.costs = 0;
  scenario.pcpus = 4;
  scenario.guests.resize(1);
  Guest& g = scenario.guests[0];
  g.vcpus = 4;
  g.copies = 1;
  g.tasks = std::min(g.tasks, 4);
  g.quota = g.tick = g.affinity = 0;
  std::erase_if(g.steps, [](const Step& step) { return step.kind == 8; });  // no interrupts
  const SimulationConfig config = config_of(scenario);
  const Results r = simulate(config);
  Auditor auditor(config);
  auditor.follow(r.trace(), r.end());
  RC_ASSERT(auditor.overtakings_of_fair() == 0u);
  overtakings += auditor.overtakings();
  for (const std::string lock : {"l", "m"}) {
    contended += static_cast<std::size_t>(r.count("vms.g0.locks." + lock + ".contended"));
  }
}

// The same in each run unless the environment says otherwise. Each test has so many.
void use_fixed_seed() { setenv("RC_PARAMS", "seed=20240229 max_success=4000", 0); }

TEST(RandomScenarios, KeepEveryLaw) {
  use_fixed_seed();
  Seen seen;
  EXPECT_TRUE(rc::check("every law is kept", [&] { check_laws(*scenarios(), seen); }));
  EXPECT_GT(seen.contended, 300u);
  EXPECT_GT(seen.holder_preemptions, 100u);
  EXPECT_GT(seen.reserved, 50u);
  EXPECT_GT(seen.coalesced, 100u);
  EXPECT_GT(seen.limited, 50u);
  EXPECT_GT(seen.preemptions, 10'000u);
  EXPECT_GT(seen.migrations, 1'000u);
  EXPECT_GT(seen.overtakings, 100u);
}

TEST(RandomScenarios, ServeFairLocksInTheOrderOfRequests) {
  use_fixed_seed();
  std::size_t contended = 0;
  std::size_t overtakings = 0;
  EXPECT_TRUE(rc::check("first come, first served", [&] { check_order(*scenarios(), contended, overtakings); }));
  EXPECT_GT(contended, 500u);
  EXPECT_GT(overtakings, 50u);  // of unfair locks
}

TEST(RandomScenarios, HaveTheSameMetricsTwice) {
  use_fixed_seed();
  EXPECT_TRUE(rc::check("the same again", [] { check_repeats(*scenarios()); }));
}

}  // namespace
}  // namespace vcpusim::testing
