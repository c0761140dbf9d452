// Xen's first credit scheduler: vCPUs earn credit by weight, burn it by running, and run by the sign of what is left.
//
// Source      Xen 4.x, xen/common/sched/credit.c; the accounting by ticks is that of Xen 3.x, attacked in Zhou, Goel,
//             Desnoyers & Sundaram, "Scheduler vulnerabilities and coordinated attacks in cloud computing", NCA 2011
// Models      a queue per pCPU, FIFO inside each of the classes BOOST > UNDER > OVER; ticks and accounting aligned to
//             their periods; boost on wake-up of a vCPU in UNDER, until a tick finds it running; the rate limit; the
//             active list and its bounds; caps by parking; undirected yield; stealing by a pCPU that would run OVER
//             or nothing; one idle pCPU called at a time; queues sorted at the tick after an accounting
// Leaves out  soft affinity, cache-hot vCPUs (off by default in Xen), moving a running vCPU to a less busy core at a
//             tick, pinned vCPUs' shortcut
// Shows       boost lets I/O in at once; a 30 ms slice makes the preemption of a lock holder last tens of ms; with
//             accounting by ticks, whoever is off the pCPU at the ticks runs for free. A plain yield does not steal:
//             the next vCPU then has a whole slice. What steals is a sleep across the tick, with the boost after it.
// Deviations  credit is counted in time to run, not in units of 100 us (10 per ms, 300 per slice), of which Xen rounds
//             every share up, so that in the end all are in UNDER; a waiting vCPU does not lose credit at the upper
//             bound (waiting_earns); with exact accounting, a vCPU is active from its start, not only from the first
//             tick that finds it running, and becomes so again when its credit falls below zero, or else one that no
//             tick finds would keep its class forever; the vCPUs of a VM share its credit by weight (in Xen they are
//             all alike); the cap of a VM is that of its first vCPU
// yield_to    not honoured: Xen knows no directed yield, and answers a spinning vCPU with an undirected one
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/host/scheduler.h"
#include "models/host/schedulers/idle_pcpus.h"
#include "models/host/schedulers/vcpu_queues.h"

namespace vcpusim {

namespace {

class Credit final : public HostScheduler {
 public:
  struct Params {
    Duration timeslice = std::chrono::milliseconds(30);
    Duration tick = std::chrono::milliseconds(10);
    Duration accounting = std::chrono::milliseconds(30);
    Duration ratelimit = std::chrono::microseconds(1000);
    bool precise_accounting = true;
    bool boost = true;
    bool waiting_earns = true;
    void describe(ParamVisitor& visitor) {
      visitor.duration("timeslice", timeslice, kPositiveDuration,
                       "time on the pCPU before the next of the class; Xen credit.c: 30 ms");
      visitor.duration("tick", tick, kPositiveDuration,
                       "period at which a pCPU looks at who runs; Xen credit.c: three ticks per slice");
      visitor.duration("accounting", accounting, kPositiveDuration,
                       "period at which credit is handed out, one period's worth of which bounds the credit of a vCPU; "
                       "Xen credit.c: one slice");
      visitor.duration("ratelimit", ratelimit, kAnyDuration,
                       "a vCPU that has run for less is not preempted; Xen sched_ratelimit_us: 1000 us");
      visitor.flag(
          "precise_accounting", precise_accounting,
          "credit is burnt by the time run (Xen 4.x); if not, whoever runs at a tick pays for all of it (3.x)");
      visitor.flag("boost", boost, "a woken vCPU in UNDER goes before all others; Xen: always");
      visitor.flag("waiting_earns", waiting_earns,
                   "a vCPU that waits in a queue may hold the credit of two periods; if not, as in Xen, one that holds "
                   "more than one period's is taken for idle and loses half, which takes from the heavy ones");
    }
  };

  Credit(HostView& host, const Params& params)
      : host_(host),
        params_(params),
        queues_(host.machine().pcpus(), host.vcpus().size()),
        idle_(host.machine().pcpus()),
        pcpus_(host.machine().pcpus()),
        vcpus_(host.vcpus().size()),
        next_accounting_(multiple_after(kTimeZero, params.accounting)) {
    for (VcpuIndex v = 0; v < vcpus_.size(); ++v) {
      const SchedulableVcpu& about = host.vcpus()[v];
      if (about.vm >= vms_.size()) vms_.resize(about.vm + 1);
      Vm& vm = vms_[about.vm];
      if (vm.vcpus.empty()) vm.cap = credit_for_cap(about.cap);
      vm.vcpus.push_back(v);
    }
    active_vms_.reserve(vms_.size());
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      if (i == 0 || socket_of(i) != socket_of(i - 1)) sockets_.push_back(i);
    }
    sockets_.push_back(host.machine().pcpus());
  }

  // A vCPU stays where it was; the queues are evened out by those that run dry.
  PcpuId place(VcpuIndex vcpu, PcpuId previous, PcpuId) override {
    const PcpuSet& allowed = affinity(vcpu);
    if (previous != kNoPcpu && allowed.contains(previous)) return previous;
    PcpuId best = kNoPcpu;
    for (std::uint32_t i = 0; i < pcpus_.size(); ++i) {
      const PcpuId pcpu{i};
      if (!allowed.contains(pcpu)) continue;
      if (best == kNoPcpu || runnable_on(pcpu) < runnable_on(best)) best = pcpu;
    }
    return best;
  }

  void enqueue(VcpuIndex vcpu, PcpuId pcpu, Enqueue why) override {
    catch_up();
    PerPcpu& here = pcpus_[index_of(pcpu)];
    PerVcpu& v = vcpus_[vcpu];
    const bool was_running = why == Enqueue::kPreempted || why == Enqueue::kYielded;
    if (was_running) {
      tick_if_due(vcpu, pcpu);
      here.returning = vcpu;
      here.returning_by_will = why == Enqueue::kYielded;
    }
    if (why == Enqueue::kNew && params_.precise_accounting) activate(vcpu);
    v.pcpu = pcpu;
    v.waiting = true;
    v.called_elsewhere = false;
    if (v.parked) {
      ++here.parked;
      return;
    }
    if (why == Enqueue::kWoken && v.rank == Rank::kUnder && params_.boost) v.rank = Rank::kBoost;
    insert(vcpu);
    if (!was_running) call_for(vcpu);
  }

  bool preempts(VcpuIndex vcpu, PcpuId pcpu) override {
    if (!queues_.contains(vcpu) || vcpus_[vcpu].called_elsewhere) return false;
    return beats_running(vcpu, pcpu);
  }

  void dequeue(VcpuIndex vcpu) override {
    PerVcpu& v = vcpus_[vcpu];
    if (queues_.contains(vcpu)) {
      queues_.erase(vcpu);
    } else {
      --pcpus_[index_of(v.pcpu)].parked;
    }
    v.waiting = false;
    v.yielded = false;
  }

  void charge(VcpuIndex vcpu, PcpuId, Duration ran) override {
    if (!params_.precise_accounting) return;
    PerVcpu& v = vcpus_[vcpu];
    v.credit -= ran;
    if (v.credit < Duration::zero()) activate(vcpu);
  }

  void blocked(VcpuIndex vcpu, PcpuId pcpu) override {
    catch_up();
    tick_if_due(vcpu, pcpu);
    vcpus_[vcpu].yielded = false;
  }

  VcpuIndex pick(PcpuId pcpu) override {
    catch_up();
    PerPcpu& here = pcpus_[index_of(pcpu)];
    const bool limited = is_rate_limited(here);
    const VcpuIndex next = limited ? here.returning : choose(pcpu);
    const bool goes_on = next != kNoVcpu && next == here.returning;
    here.returning = kNoVcpu;
    const VcpuIndex called_for = std::exchange(here.called_for, kNoVcpu);
    if (next == kNoVcpu) {
      idle_.insert(pcpu);
      return kNoVcpu;
    }
    idle_.erase(pcpu);
    queues_.erase(next);
    vcpus_[next].waiting = false;
    vcpus_[next].pcpu = pcpu;
    const SimTime now = host_.now();
    if (!goes_on) here.since = now;
    here.slice_end = now + std::max(params_.timeslice, params_.ratelimit);
    here.retry_at = limited ? here.since + params_.ratelimit : kNever;
    if (here.next_tick <= now) here.next_tick = multiple_after(now, params_.tick);
    call_for_leftovers(pcpu, called_for);
    return next;
  }

  SimTime next_check(PcpuId pcpu) override {
    const PerPcpu& here = pcpus_[index_of(pcpu)];
    const VcpuIndex running = host_.running_on(pcpu);
    if (running != kNoVcpu && vcpus_[running].parked) return host_.now();
    return std::max(host_.now(), std::min({here.next_tick, here.slice_end, here.retry_at}));
  }

  bool check(PcpuId pcpu) override {
    catch_up();
    PerPcpu& here = pcpus_[index_of(pcpu)];
    const VcpuIndex running = host_.running_on(pcpu);
    tick_if_due(running, pcpu);
    if (vcpus_[running].parked) return true;
    const SimTime now = host_.now();
    if (here.retry_at <= now) {
      here.retry_at = kNever;
      if (!queues_.empty(pcpu)) return true;
    }
    if (here.slice_end > now) return false;
    if (!queues_.empty(pcpu)) return true;
    if (vcpus_[running].rank <= Rank::kOver && find_to_steal(pcpu, Rank::kOver) != kNoVcpu) return true;
    here.slice_end = now + std::max(params_.timeslice, params_.ratelimit);
    return false;
  }

  void timer_expired() override { catch_up(); }

  void yield(VcpuIndex vcpu, PcpuId) override { vcpus_[vcpu].yielded = true; }
  bool yield_to(VcpuIndex, VcpuIndex) override { return false; }
  bool directs_yields() const override { return false; }

  std::size_t runnable_on(PcpuId pcpu) const override {
    return queues_.size(pcpu) + pcpus_[index_of(pcpu)].parked + (host_.running_on(pcpu) == kNoVcpu ? 0 : 1);
  }
  PcpuId queue_of(VcpuIndex vcpu) const override { return vcpus_[vcpu].pcpu; }

 private:
  enum class Rank : std::uint8_t { kIdle, kOver, kUnder, kBoost };
  struct PerVcpu {
    PcpuId pcpu = kNoPcpu;
    Duration credit{};
    Rank rank = Rank::kUnder;
    bool active = false;   // it earns
    bool parked = false;   // held back by the cap of its VM
    bool waiting = false;  // enqueued: in a queue, or parked
    bool yielded = false;
    bool called_elsewhere = false;  // an idle pCPU was called to take it
  };
  struct PerPcpu {
    VcpuIndex returning = kNoVcpu;  // ran until just now; pick() is next
    bool returning_by_will = false;
    VcpuIndex called_for = kNoVcpu;  // for whose sake it was called while it was idle
    SimTime since = kTimeZero;       // when the running vCPU came
    SimTime slice_end = kNever;
    SimTime next_tick = kTimeZero;
    SimTime retry_at = kNever;  // a preemption that the rate limit has put off
    std::uint64_t sorted = 0;   // accountings_ when the queue was sorted
    std::size_t parked = 0;
  };
  struct Vm {
    std::vector<VcpuIndex> vcpus;
    Duration cap{};  // per accounting period; zero: none
    std::int64_t active_weight = 0;
    std::int64_t active_vcpus = 0;
  };

  static SimTime multiple_after(SimTime time, Duration period) {
    return kTimeZero + ((time - kTimeZero) / period + 1) * period;
  }
  // Credit times a ratio, rounded up.
  static Duration scaled(Duration credit, std::int64_t numerator, std::int64_t denominator) {
    return Duration{detail::mul_div_up(credit.count(), numerator, denominator)};
  }
  // A cap is a real number in the scenario; millionths of a pCPU are its last digits here.
  Duration credit_for_cap(double cap) const {
    constexpr std::int64_t kMillion = 1'000'000;
    return scaled(params_.accounting, std::llround(cap * kMillion), kMillion);
  }
  std::uint32_t socket_of(std::uint32_t pcpu) const { return host_.machine().socket_of(PcpuId{pcpu}); }
  const PcpuSet& affinity(VcpuIndex vcpu) const { return host_.vcpus()[vcpu].affinity; }
  bool outranks(VcpuIndex a, VcpuIndex b) const { return vcpus_[a].rank > vcpus_[b].rank; }
  bool protects(const PerPcpu& here) const { return host_.now() - here.since < params_.ratelimit; }

  // --- Queues

  void insert(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    VcpuIndex behind = queues_.front(v.pcpu);
    while (behind != kNoVcpu && !outranks(vcpu, behind)) behind = queues_.after(behind);
    if (v.yielded && behind != kNoVcpu) behind = queues_.after(behind);
    v.yielded = false;
    queues_.insert_before(v.pcpu, behind, vcpu);
  }

  // Accounting has changed ranks: those above OVER come to the front, all in their order.
  void sort(PcpuId pcpu) {
    VcpuIndex first_low = kNoVcpu;
    for (VcpuIndex v = queues_.front(pcpu); v != kNoVcpu;) {
      const VcpuIndex next = queues_.after(v);
      if (vcpus_[v].rank <= Rank::kOver) {
        if (first_low == kNoVcpu) first_low = v;
      } else if (first_low != kNoVcpu) {
        queues_.erase(v);
        queues_.insert_before(pcpu, first_low, v);
      }
      v = next;
    }
  }

  // Whether the vCPU that ran until just now, and not by its own will, has to go on.
  bool is_rate_limited(const PerPcpu& here) const {
    return here.returning != kNoVcpu && !here.returning_by_will && queues_.contains(here.returning) && protects(here);
  }

  VcpuIndex choose(PcpuId pcpu) const {
    const VcpuIndex head = queues_.front(pcpu);
    const Rank rank = head == kNoVcpu ? Rank::kIdle : vcpus_[head].rank;
    if (rank > Rank::kOver) return head;
    const VcpuIndex stolen = find_to_steal(pcpu, rank);
    return stolen != kNoVcpu ? stolen : head;
  }

  // Who waits elsewhere with a rank above `rank` and may run on `pcpu`: own socket first, then the next ones.
  VcpuIndex find_to_steal(PcpuId pcpu, Rank rank) const {
    if (queues_.size() == queues_.size(pcpu)) return kNoVcpu;
    const std::size_t sockets = sockets_.size() - 1;
    std::size_t own = 0;
    while (sockets_[own + 1] <= index_of(pcpu)) ++own;
    for (std::size_t n = 0; n < sockets; ++n) {
      const std::size_t socket = (own + n) % sockets;
      for (std::uint32_t i = sockets_[socket]; i < sockets_[socket + 1]; ++i) {
        const PcpuId peer{i};
        if (peer == pcpu || host_.running_on(peer) == kNoVcpu) continue;  // an idle one is about to take its own
        for (VcpuIndex v = queues_.front(peer); v != kNoVcpu; v = queues_.after(v)) {
          if (vcpus_[v].rank <= rank) break;
          if (affinity(v).contains(pcpu)) return v;
        }
      }
    }
    return kNoVcpu;
  }

  // --- Who else may have to decide

  bool call_idle_pcpu_for(VcpuIndex vcpu) {
    const PcpuId pcpu = idle_.next_in(affinity(vcpu), last_called_);
    if (pcpu == kNoPcpu) return false;
    idle_.erase(pcpu);
    pcpus_[index_of(pcpu)].called_for = vcpu;
    last_called_ = pcpu;
    host_.reschedule(pcpu);
    return true;
  }

  // `vcpu` has been inserted. On an idle pCPU it will be picked; on a busy one, or one that has been called for
  // somebody else, it is better taken by another idle one.
  void call_for(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    if (idle_.contains(v.pcpu)) {
      idle_.erase(v.pcpu);
    } else {
      v.called_elsewhere = call_idle_pcpu_for(vcpu);
    }
  }

  // `pcpu` is busy now: whom it was called for, and whoever is left in its queue, may suit an idle pCPU.
  void call_for_leftovers(PcpuId pcpu, VcpuIndex called_for) {
    if (called_for != kNoVcpu && queues_.contains(called_for)) call_idle_pcpu_for(called_for);
    for (VcpuIndex v = queues_.front(pcpu); v != kNoVcpu && !idle_.empty(); v = queues_.after(v)) {
      if (call_idle_pcpu_for(v)) return;
    }
  }

  bool beats_running(VcpuIndex vcpu, PcpuId pcpu) {
    PerPcpu& here = pcpus_[index_of(pcpu)];
    if (!outranks(vcpu, host_.running_on(pcpu))) return false;
    if (!protects(here)) return true;
    here.retry_at = here.since + params_.ratelimit;
    return false;
  }

  // --- Ticks and accounting

  void tick_if_due(VcpuIndex vcpu, PcpuId pcpu) {
    PerPcpu& here = pcpus_[index_of(pcpu)];
    if (here.next_tick > host_.now()) return;
    here.next_tick = multiple_after(host_.now(), params_.tick);
    PerVcpu& v = vcpus_[vcpu];
    if (v.rank == Rank::kBoost) v.rank = Rank::kUnder;
    if (!params_.precise_accounting) v.credit -= params_.tick;
    activate(vcpu);
    if (here.sorted == accountings_) return;
    here.sorted = accountings_;
    sort(pcpu);
  }

  void activate(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    if (v.active) return;
    v.active = true;
    const SchedulableVcpu& about = host_.vcpus()[vcpu];
    Vm& vm = vms_[about.vm];
    if (vm.active_vcpus == 0) active_vms_.insert(active_vms_.begin(), about.vm);
    ++vm.active_vcpus;
    vm.active_weight += about.weight;
    total_weight_ += about.weight;
  }

  // REQUIRES that it is active. An emptied VM leaves active_vms_ at the end of account().
  void deactivate(VcpuIndex vcpu) {
    vcpus_[vcpu].active = false;
    const SchedulableVcpu& about = host_.vcpus()[vcpu];
    Vm& vm = vms_[about.vm];
    --vm.active_vcpus;
    vm.active_weight -= about.weight;
    total_weight_ -= about.weight;
  }

  // Accounting has no event of its own unless somebody is parked: it is made up for when a pCPU next decides, which
  // is at its period while anybody runs.
  void catch_up() {
    if (next_accounting_ > host_.now()) return;
    while (next_accounting_ <= host_.now() && !active_vms_.empty()) {
      account();
      next_accounting_ += params_.accounting;
    }
    if (active_vms_.empty()) {
      balance_ = Duration::zero();
      next_accounting_ = multiple_after(host_.now(), params_.accounting);
    }
    if (parked_ > 0) host_.set_timer(next_accounting_);
  }

  void account() {
    ++accountings_;
    // A negative balance is brought back to zero by handing out more.
    const Duration debt = -std::min(Duration::zero(), balance_);
    Duration total = params_.accounting * static_cast<std::int64_t>(pcpus_.size()) + debt;
    const std::int64_t weights = total_weight_;
    std::int64_t weights_left = weights;
    bool somebody_wants_more = false;
    balance_ = Duration::zero();
    for (std::size_t i = 0; i < active_vms_.size(); ++i) {
      const Vm& vm = vms_[active_vms_[i]];
      const std::int64_t weight = vm.active_weight;
      weights_left -= weight;
      // At most what all its vCPUs can burn in a period.
      Duration peak = params_.accounting * vm.active_vcpus + scaled(debt, weight, weights);
      Duration park_below = Duration::min();
      if (vm.cap > Duration::zero()) {
        peak = std::min(peak, vm.cap);
        park_below = -scaled(vm.cap, 1, vm.active_vcpus);
      }
      Duration fair = scaled(total, weight, weights);
      if (fair < peak) {
        somebody_wants_more = true;
      } else {
        // What it cannot use goes to those behind it.
        if (weights_left > 0) total += scaled(fair - peak, weights, weights_left);
        // If those before it could have used it, it goes before them the next time.
        if (somebody_wants_more) {
          const auto at = active_vms_.begin() + static_cast<std::ptrdiff_t>(i);
          std::rotate(active_vms_.begin(), at, at + 1);
        }
        fair = peak;
      }
      for (const VcpuIndex vcpu : vm.vcpus) {
        if (!vcpus_[vcpu].active) continue;
        earn(vcpu, scaled(fair, host_.vcpus()[vcpu].weight, weight), park_below);
        balance_ += vcpus_[vcpu].credit;
      }
    }
    std::erase_if(active_vms_, [this](std::uint32_t vm) { return vms_[vm].active_vcpus == 0; });
  }

  void earn(VcpuIndex vcpu, Duration credit, Duration park_below) {
    const Duration bound = params_.accounting;
    PerVcpu& v = vcpus_[vcpu];
    v.credit += credit;
    if (v.credit < Duration::zero()) {
      v.rank = Rank::kOver;
      if (v.credit < park_below && !v.parked) park(vcpu);
      v.credit = std::max(v.credit, -bound);
      return;
    }
    v.rank = Rank::kUnder;
    if (v.parked) unpark(vcpu);
    if (v.credit <= bound) return;
    if (v.waiting && params_.waiting_earns) {
      v.credit = std::min(v.credit, 2 * bound);
    } else {
      // It does not run as much as it may: it earns no more, and starts a little ahead when it is back.
      deactivate(vcpu);
      v.credit /= 2;
    }
  }

  void park(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    v.parked = true;
    ++parked_;
    if (queues_.contains(vcpu)) {
      queues_.erase(vcpu);
      ++pcpus_[index_of(v.pcpu)].parked;
    } else if (v.pcpu != kNoPcpu && host_.running_on(v.pcpu) == vcpu) {
      host_.reschedule(v.pcpu);
    }
  }

  // Without a boost: it was not the vCPU that waited.
  void unpark(VcpuIndex vcpu) {
    PerVcpu& v = vcpus_[vcpu];
    v.parked = false;
    --parked_;
    if (!v.waiting) return;
    --pcpus_[index_of(v.pcpu)].parked;
    insert(vcpu);
    call_for(vcpu);
    if (v.called_elsewhere) return;
    if (host_.running_on(v.pcpu) == kNoVcpu || beats_running(vcpu, v.pcpu)) host_.reschedule(v.pcpu);
  }

  HostView& host_;
  Params params_;
  VcpuQueues queues_;
  IdlePcpus idle_;
  PcpuId last_called_ = kNoPcpu;
  std::vector<PerPcpu> pcpus_;
  std::vector<PerVcpu> vcpus_;
  std::vector<Vm> vms_;
  std::vector<std::uint32_t> sockets_;     // first pCPU of each, and the number of pCPUs
  std::vector<std::uint32_t> active_vms_;  // those with an active vCPU, in the order in which they get credit
  std::int64_t total_weight_ = 0;          // of all active vCPUs
  Duration balance_{};                     // sum of their credit after the last accounting
  std::uint64_t accountings_ = 0;
  std::size_t parked_ = 0;
  SimTime next_accounting_;
};

}  // namespace

namespace schedulers {
SchedulerKind credit() {
  return scheduler_kind<Credit>("credit", "Xen's credit scheduler: classes by credit, boost on wake-up, caps",
                                "Xen 4.x, xen/common/sched/credit.c");
}
}  // namespace schedulers

}  // namespace vcpusim
