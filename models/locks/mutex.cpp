// Mutex: a sleeping lock whose waiters spin for as long as the owner is about to release it.
//
// Source      kernel/locking/mutex.c and kernel/locking/osq_lock.c, Linux 5.10 (in structure since 4.10)
// Models      one spinner at a time looks at the owner, the others queue up for that role (OSQ); spinning ends when the
//             owner sleeps or waits for a vCPU, when its vCPU reads as preempted (needs steal_clock), or when the
//             spinner's own vCPU wants to switch tasks; sleepers in order of arrival, woken one per release; the first
//             of them spins, too, and asks for the lock to be handed over when it has been woken in vain
// Leaves out  the wait lock (its sections are single accesses here); a spinner that leaves the middle of the OSQ does
// so
//             in one step that costs three transfers; the transfer of preempted flags
// Shows       the difference between waiters that follow a preempted owner into sleep and waiters that burn their
// slices
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "models/guest/vm.h"
#include "models/locks/lock.h"

namespace vcpusim {

namespace {

// The queue of those who would spin on a mutex. A place in it is a vCPU's: spinners are not switched out.
class SpinnerQueue {
 public:
  explicit SpinnerQueue(const LockSite& site) : tail_line_(site.machine) {
    nodes_.reserve(site.vcpu_count);
    for (std::size_t i = 0; i < site.vcpu_count; ++i) nodes_.emplace_back(site.machine);
  }

  // Waits for its turn; `won` is false if it has given up.
  Co enter(Task& self, bool& won) {
    Node& me = node_of(self.vcpu());
    me.vcpu = &self.vcpu();
    me.before = me.after = nullptr;
    co_await self.atomic(tail_line_, [&] { append(me); });
    won = true;
    if (me.before == nullptr) co_return;
    co_await self.store(me.before->line, [] {});
    const auto gives_up = [&] {
      return me.before != nullptr && (self.vcpu().needs_resched() || me.before->vcpu->reads_preempted());
    };
    while (me.before != nullptr) {
      co_await self.watch(me.line, [&] { return me.before == nullptr || gives_up(); });
      if (!gives_up()) continue;
      // Its turn may come while it undoes the link of its predecessor.
      won = co_await self.atomic(me.before->line, [&] {
        if (me.before == nullptr) return true;
        remove(me);
        return false;
      });
      if (won) co_return;
      co_await self.store(me.line, [] {});
      if (me.after != nullptr) co_await self.store(me.after->line, [] {});
      co_return;
    }
  }

  Co leave(Task& self) {
    Node& me = node_of(self.vcpu());
    if (me.after == nullptr) {
      const bool alone = co_await self.atomic(tail_line_, [&] {
        if (me.after != nullptr) return false;
        remove(me);
        return true;
      });
      if (alone) co_return;
    }
    co_await self.store(me.after->line, [&] { remove(me); });
  }

 private:
  struct Node {
    explicit Node(const Machine& machine) : line(machine) {}
    CacheLine line;
    Vcpu* vcpu = nullptr;
    Node* before = nullptr;  // null: it is its turn
    Node* after = nullptr;
  };

  Node& node_of(const Vcpu& vcpu) { return nodes_[index_of(vcpu.id())]; }

  // Each node that waits looks at the vCPU of the one before it.
  void append(Node& node) {
    if (tail_ != nullptr) link(*tail_, node);
    tail_ = &node;
  }
  static void link(Node& before, Node& after) {
    before.after = &after;
    after.before = &before;
    before.vcpu->add_looker(after.line);
  }
  void remove(Node& node) {
    Node* const before = std::exchange(node.before, nullptr);
    if (before != nullptr) {
      before->vcpu->remove_looker(node.line);
      before->after = nullptr;
    }
    Node* const after = node.after;
    if (after != nullptr) {
      node.vcpu->remove_looker(after->line);
      after->before = nullptr;
      if (before != nullptr) link(*before, *after);
      after->line.look_again();
    } else {
      tail_ = before;
    }
  }

  CacheLine tail_line_;
  Node* tail_ = nullptr;
  std::vector<Node> nodes_;  // by vCPU; never resized
};

class Mutex final : public Lock {
 public:
  struct Params {
    bool spin = true;
    bool handoff = true;
    void describe(ParamVisitor& visitor) {
      visitor.flag("spin", spin, "optimistic spinning (CONFIG_MUTEX_SPIN_ON_OWNER); false: waiters sleep at once");
      visitor.flag("handoff", handoff,
                   "the first sleeper, woken in vain, gets the lock at the next release; since Linux 4.10");
    }
  };

  Mutex(const LockSite& site, const Params& params)
      : counters_(site.counters), params_(params), line_(site.machine), spinners_(site) {}

  Co acquire(Task& self) override {
    bool taken = co_await self.atomic(line_, [&] { return try_take(self); });
    if (taken) co_return;
    self.set_activity(Activity::kSpin);
    self.disable_preemption();
    if (params_.spin) co_await spin_for_turn(self, taken);
    if (!taken) {
      if (self.vcpu().needs_resched()) {
        // Switch before taking the lock rather than right after it.
        self.enable_preemption();
        co_await self.run(Duration::zero());
        self.disable_preemption();
      }
      co_await sleep(self);
    }
    self.enable_preemption();
  }

  Co release(Task& self) override {
    Sleeper* next = nullptr;
    co_await self.atomic(line_, [&] {
      next = sleepers_.empty() ? nullptr : sleepers_.front();
      owner_ = std::exchange(hand_over_, false) && next != nullptr ? next->task : nullptr;
    });
    if (next != nullptr) wake(self, *next);
  }

  bool fair() const override { return false; }
  static LockTraits traits(const Params&) { return {.sleeps = true, .atomic_section = false}; }
  bool sleeping() const override { return true; }

 private:
  struct Sleeper {
    Task* task;
    bool asleep = false;
    bool woken = false;  // before it was asleep
  };

  bool try_take(Task& self) {
    if (owner_ == &self) return true;  // it has been handed over
    if (owner_ != nullptr) return false;
    owner_ = &self;
    if (!sleepers_.empty() && sleepers_.front()->task != &self) ++counters_.steals;
    return true;
  }

  // Whether it is worth spinning for `owner`, as far as `self` can see.
  static bool is_about_to_release(const Task& owner) {
    return owner.vcpu().current() == &owner && !owner.vcpu().reads_preempted();
  }

  // As one of those who have not slept yet.
  Co spin_for_turn(Task& self, bool& taken) {
    co_await self.load(line_);
    if (self.vcpu().needs_resched() || (owner_ != nullptr && !is_about_to_release(*owner_))) co_return;
    bool turn = false;
    co_await spinners_.enter(self, turn);
    if (!turn) co_return;
    co_await spin_on_owner(self, taken);
    co_await spinners_.leave(self);
  }

  Co spin_on_owner(Task& self, bool& taken) {
    co_await self.load(line_);
    while (true) {
      if (owner_ == nullptr || owner_ == &self) {
        taken = co_await self.atomic(line_, [&] { return try_take(self); });
        if (taken) co_return;
      }
      const Task* const owner = owner_;
      if (self.vcpu().needs_resched() || !is_about_to_release(*owner)) co_return;
      Vcpu& its_vcpu = owner->vcpu();
      its_vcpu.add_looker(line_);
      co_await self.watch(
          line_, [&] { return owner_ != owner || self.vcpu().needs_resched() || !is_about_to_release(*owner); });
      its_vcpu.remove_looker(line_);
    }
  }

  Co sleep(Task& self) {
    Sleeper me{&self};
    bool taken = co_await self.atomic(line_, [&] {
      if (try_take(self)) return true;
      sleepers_.push_back(&me);
      return false;
    });
    if (taken) co_return;
    // A release from now on finds `me`, one before leaves the lock free: look once more.
    taken = co_await self.atomic(line_, [&] { return try_take(self); });
    while (!taken) {
      if (!std::exchange(me.woken, false)) {
        ++counters_.halts;
        me.asleep = true;
        co_await self.block();
      }
      const bool first = sleepers_.front() == &me;
      taken = co_await self.atomic(line_, [&] {
        if (try_take(self)) return true;
        if (first && params_.handoff && owner_ != nullptr) hand_over_ = true;
        return false;
      });
      if (taken) break;
      ++counters_.spurious_wakeups;
      if (first && params_.spin) co_await spin_on_owner(self, taken);
    }
    sleepers_.erase(std::ranges::find(sleepers_, &me));
  }

  static void wake(Task& self, Sleeper& sleeper) {
    if (std::exchange(sleeper.asleep, false)) {
      sleeper.task->wake(&self);
    } else {
      sleeper.woken = true;
    }
  }

  LockCounters& counters_;
  Params params_;
  CacheLine line_;
  const Task* owner_ = nullptr;
  bool hand_over_ = false;         // the next release gives the lock to the first sleeper
  std::deque<Sleeper*> sleepers_;  // in order of arrival
  SpinnerQueue spinners_;
};

}  // namespace

namespace locks {
LockKind mutex() {
  return lock_kind<Mutex>("mutex", "sleeping lock with optimistic spinning",
                          "kernel/locking/mutex.c and osq_lock.c, Linux 5.10");
}
}  // namespace locks

}  // namespace vcpusim
