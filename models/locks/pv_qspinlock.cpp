// Paravirtual queue spinlock: an MCS queue whose waiters halt, with stealing while the head of the queue is not active.
//
// Source      kernel/locking/qspinlock_paravirt.h, Linux 4.2 to 6.17; pv_wait and pv_kick: arch/x86/kernel/kvm.c, 5.10;
//             wait_early: commits cd0272fab785 (4.5), 75437bb304b2 (about 4.11), 89340d0935c9 (5.4); kick at unlock
//             time only: commit 75d227028068 (4.3); kick-ahead: the series "locking/qspinlock: Enhance pvqspinlock
//             performance", v2, July 2015, which was not merged
// Models      node states; lock byte with its slow value; the pending byte that forbids stealing; one hash entry per
//             lock, put there by the head itself or by the new owner on its behalf; predecessors looked at every 256
//             turns; the head that has been kicked once and lost the lock to a stealer spins from then on
// Leaves out  collisions in the hash table; more than one nesting level per vCPU; the transfer of preempted flags
// Shows       halt cascades behind a halted node; hand-offs to halted heads that stealers may use; a head preempted
// with
//             stealing forbidden, behind which everybody waits
#include <array>
#include <utility>
#include <vector>

#include "models/locks/paravirt.h"

namespace vcpusim {

namespace {

class PvQspinlock final : public Lock {
 public:
  struct Params : ParavirtParams {
    enum class Steal { kNone, kOnce, kHybrid };
    enum class WaitEarly { kOff, kNode, kNodeOrPreempted };
    enum class KickAt { kLockTime, kUnlockTime, kAdaptive };
    static constexpr std::int64_t kAutoLevel = -1;
    Steal steal = Steal::kHybrid;
    WaitEarly wait_early = WaitEarly::kNode;
    std::int64_t check_period = 256;
    KickAt kick = KickAt::kUnlockTime;
    std::int64_t kick_ahead = 0;
    std::int64_t few_vcpus = 4;
    Duration hash_insert = std::chrono::nanoseconds(10);
    Duration hash_lookup = std::chrono::nanoseconds(10);

    void describe(ParamVisitor& visitor) {
      static constexpr std::array<std::string_view, 3> kSteals{"none", "once", "hybrid"};
      static constexpr std::array<std::string_view, 3> kWaitEarly{"off", "node", "node_or_preempted"};
      static constexpr std::array<std::string_view, 3> kKicks{"lock_time", "unlock_time", "adaptive"};
      ParavirtParams::describe(visitor);
      visitor.choice("steal", steal, kSteals,
                     "whether newcomers may take the free lock before the queue; none: Linux 4.2 to 4.4; once, on "
                     "arrival: 4.5 to 4.14; hybrid, for as long as the head is not active: since 4.15");
      visitor.choice("wait_early", wait_early, kWaitEarly,
                     "a waiter halts without spinning if its predecessor has halted (node: Linux 4.5 to 4.10 and since "
                     "5.4) or if its vCPU also reads as preempted (needs steal_clock; 4.11 to 5.3)");
      visitor.integer("check_period", check_period, {1, 1 << 20},
                      "turns of the spin loop between two looks at the predecessor; PV_PREV_CHECK_MASK in "
                      "kernel/locking/qspinlock_paravirt.h");
      visitor.choice("kick", kick, kKicks,
                     "when a halted successor is woken; lock_time: by the new owner in its section, Linux 4.2; "
                     "unlock_time: since 4.3; adaptive: at lock time unless there is kick_ahead or there are few_vcpus "
                     "(proposed in 2015)");
      visitor.integer("kick_ahead", kick_ahead, {kAutoLevel, 1 << 20},
                      "nodes behind the head that a slow unlock also kicks if they have halted; -1: by the size of the "
                      "guest, 1, 2, 3, 4 from 4, 8, 16, 32 vCPUs on (proposed in July 2015)");
      visitor.integer("few_vcpus", few_vcpus, {0, 1 << 20},
                      "adaptive: a guest with fewer vCPUs kicks at unlock time; an estimate");
      visitor.duration("hash_insert", hash_insert, kAnyDuration,
                       "computing in pv_hash, beside the line of the entry; an estimate");
      visitor.duration("hash_lookup", hash_lookup, kAnyDuration,
                       "computing in pv_unhash, beside the line of the entry; an estimate");
    }
  };

  PvQspinlock(const LockSite& site, const Params& params)
      : paravirt_(site, params),
        params_(params),
        check_period_(params.check_period * site.machine.pause()),
        kick_ahead_(level(params.kick_ahead, site.vcpu_count)),
        kick_at_lock_time_(params.kick == Params::KickAt::kLockTime ||
                           (params.kick == Params::KickAt::kAdaptive && kick_ahead_ == 0 &&
                            static_cast<std::int64_t>(site.vcpu_count) >= params.few_vcpus)),
        vcpus_(site.vcpus),
        line_(site.machine),
        hash_entry_(site.machine) {
    nodes_.reserve(site.vcpu_count);
    for (std::size_t i = 0; i < site.vcpu_count; ++i) nodes_.emplace_back(site.machine, i);
  }

  Co acquire(Task& self) override {
    const bool free = co_await self.atomic(line_, [this] { return take_if_free(); });
    if (free) co_return;
    bool stolen = false;
    co_await steal(self, stolen);
    if (!stolen) co_await queue(self);
  }

  Co release(Task& self) override {
    const bool fast = co_await self.atomic(line_, [this] {
      if (word_.byte != Byte::kLocked) return false;
      word_.byte = Byte::kFree;
      return true;
    });
    if (fast) co_return;
    // Whoever wrote the slow value has put the head into the hash before.
    co_await self.run(params_.hash_lookup);
    co_await self.load(hash_entry_);
    Node* const head = co_await self.store(hash_entry_, [this] { return std::exchange(hashed_, nullptr); });
    co_await self.store(line_, [this] { word_.byte = Byte::kFree; });
    co_await paravirt_.kick(self, vcpu_of(*head));
    Node* node = head;
    for (std::int64_t i = 0; i < kick_ahead_; ++i) {
      co_await self.load(node->line);
      node = node->next;
      if (node == nullptr) co_return;
      const bool halted =
          co_await self.atomic(node->line, [this, node] { return leave_halted(*node, State::kRunning); });
      if (halted) co_await paravirt_.kick(self, vcpu_of(*node));
    }
  }

  bool fair() const override { return params_.steal == Params::Steal::kNone; }

 private:
  enum class Byte : std::uint8_t { kFree, kLocked, kSlow };
  enum class State : std::uint8_t { kRunning, kHalted, kHashed };

  struct Node {
    Node(const Machine& machine, std::size_t vcpu_number) : line(machine), vcpu(vcpu_number) {}
    CacheLine line;
    std::size_t vcpu;
    Node* next = nullptr;
    bool granted = false;  // this node is the head of the queue
    State state = State::kRunning;
  };

  struct Word {
    Byte byte = Byte::kFree;
    bool head_active = false;  // the pending byte: the head spins, and nobody may steal
    Node* tail = nullptr;
  };

  static std::int64_t level(std::int64_t level, std::size_t vcpus) {
    if (level != Params::kAutoLevel) return level;
    return vcpus >= 32 ? 4 : vcpus >= 16 ? 3 : vcpus >= 8 ? 2 : vcpus >= 4 ? 1 : 0;
  }

  Vcpu& vcpu_of(const Node& node) const { return *vcpus_[node.vcpu]; }

  bool take_if_free() {
    if (word_.byte != Byte::kFree || word_.head_active || word_.tail != nullptr) return false;
    word_.byte = Byte::kLocked;
    return true;
  }

  // The successor looks at this, too.
  void set_state(Node& node, State state) {
    node.state = state;
    if (node.next != nullptr) node.next->line.look_again();
  }

  // A compare-and-swap: whoever takes a node out of its halt does so once only.
  bool leave_halted(Node& node, State state) {
    if (node.state != State::kHalted) return false;
    set_state(node, state);
    return true;
  }

  // What a newcomer does before it queues; `taken` tells whether that is necessary.
  Co steal(Task& self, bool& taken) {
    if (params_.steal == Params::Steal::kNone) {
      co_await self.load(line_);
      if (word_.byte != Byte::kFree || word_.head_active || word_.tail != nullptr) co_return;
      taken = co_await self.atomic(line_, [this] { return take_if_free(); });
      co_return;
    }
    co_await self.load(line_);
    while (true) {
      if (word_.byte == Byte::kFree && !word_.head_active) {
        taken = co_await self.atomic(line_, [this] {
          if (word_.byte != Byte::kFree) return false;
          word_.byte = Byte::kLocked;
          if (word_.tail != nullptr) ++paravirt_.counters().steals;
          return true;
        });
        if (taken) co_return;
      }
      if (params_.steal == Params::Steal::kOnce || word_.tail == nullptr || word_.head_active) co_return;
      co_await self.watch(line_,
                          [this] { return word_.byte == Byte::kFree || word_.tail == nullptr || word_.head_active; });
    }
  }

  Co queue(Task& self) {
    Node& me = nodes_[index_of(self.vcpu().id())];
    me.next = nullptr;
    me.granted = false;
    me.state = State::kRunning;
    Node* const before = co_await self.atomic(line_, [&] { return std::exchange(word_.tail, &me); });
    if (before != nullptr) {
      co_await self.store(before->line, [&] { before->next = &me; });
      co_await wait_node(self, me, *before);
    }
    co_await wait_head(self, me);

    if (word_.tail == &me) {
      const bool alone = co_await self.atomic(line_, [&] {
        if (word_.tail != &me) return false;
        word_.tail = nullptr;
        return true;
      });
      if (alone) co_return;
    }
    if (me.next == nullptr) co_await self.watch(me.line, [&] { return me.next != nullptr; });
    co_await pass_headship(self, *me.next);
  }

  // ---- queued, not the head -------------------------------------------------------------------------------

  Co wait_node(Task& self, Node& me, Node& before) {
    while (true) {
      co_await spin(self, me, before);
      if (me.granted) co_return;
      // The owner that grants looks at the state after it has granted: one of us sees the other.
      co_await self.atomic(me.line, [&] { set_state(me, State::kHalted); });
      co_await self.load(me.line);
      if (!me.granted) {
        self.disable_interrupts();
        co_await self.load(me.line);
        if (me.state == State::kHalted) co_await paravirt_.halt(self);
        self.enable_interrupts();
      }
      co_await self.atomic(me.line, [&] { leave_halted(me, State::kRunning); });
      if (me.granted) co_return;
      ++paravirt_.counters().spurious_wakeups;
    }
  }

  bool runs(const Node& node) const {
    if (node.state != State::kRunning) return false;
    return params_.wait_early != Params::WaitEarly::kNodeOrPreempted || !vcpu_of(node).reads_preempted();
  }

  // Spins until `me` is granted, the budget is spent, or `before` is seen not to run. It is looked at every
  // check_period_, first at once, so a predecessor that stops running in between is noticed at the next look.
  Co spin(Task& self, Node& me, Node& before) {
    if (!paravirt_.budget() || params_.wait_early == Params::WaitEarly::kOff) {
      co_await self.watch_for(paravirt_.budget(), me.line, [&] { return me.granted; });
      co_return;
    }
    Vcpu& vcpu = vcpu_of(before);
    const bool by_flag = params_.wait_early == Params::WaitEarly::kNodeOrPreempted;
    Duration left = *paravirt_.budget();
    while (true) {
      co_await self.load(before.line);
      if (me.granted || !runs(before)) co_return;
      if (by_flag) vcpu.add_looker(me.line);
      co_await self.watch_for(left, me.line, [&] { return me.granted || !runs(before); });
      if (by_flag) vcpu.remove_looker(me.line);
      left = self.watch_left();
      const Duration since_look = (*paravirt_.budget() - left) % check_period_;
      if (!me.granted && since_look > Duration::zero()) {
        const Duration to_look = std::min(left, check_period_ - since_look);
        co_await self.watch_for(to_look, me.line, [&] { return me.granted; });
        left -= to_look - self.watch_left();
      }
      if (me.granted || left == Duration::zero()) co_return;
    }
  }

  // The new owner makes `successor` the head. If that has halted it stays so: the release will kick it.
  Co pass_headship(Task& self, Node& successor) {
    self.post(successor.line, [&] { successor.granted = true; });
    const State wanted = kick_at_lock_time_ ? State::kRunning : State::kHashed;
    const bool halted = co_await self.atomic(successor.line, [&] { return leave_halted(successor, wanted); });
    if (!halted) co_return;
    if (kick_at_lock_time_) {
      co_await paravirt_.kick(self, vcpu_of(successor));
      co_return;
    }
    // Nobody but the owner itself acts on the byte and the entry, so that their order does not matter.
    co_await self.store(line_, [this] { word_.byte = Byte::kSlow; });
    co_await insert(self, successor);
  }

  // ---- the head -------------------------------------------------------------------------------------------

  Co wait_head(Task& self, Node& me) {
    bool hashed = me.state == State::kHashed;
    while (true) {
      co_await self.store(me.line, [&] { set_state(me, State::kRunning); });
      co_await set_head_active(self, true);
      bool taken = false;
      co_await spin_as_head(self, taken);
      if (taken) co_return;
      co_await set_head_active(self, false);
      if (!hashed) {
        // Once only: if a stealer takes the lock after the kick, the byte does not become slow again, and the head
        // never halts again.
        hashed = true;
        co_await insert(self, me);
        const Byte before = co_await self.atomic(line_, [this] { return std::exchange(word_.byte, Byte::kSlow); });
        if (before == Byte::kFree) {
          // Released since the last look: the swap has taken the lock.
          co_await self.store(line_, [this] { word_.byte = Byte::kLocked; });
          co_await self.store(hash_entry_, [this] { hashed_ = nullptr; });
          co_return;
        }
      }
      co_await self.store(me.line, [&] { set_state(me, State::kHashed); });
      self.disable_interrupts();
      co_await self.load(line_);
      if (word_.byte == Byte::kSlow) {
        co_await paravirt_.halt(self);
        if (word_.byte != Byte::kFree) ++paravirt_.counters().spurious_wakeups;
      }
      self.enable_interrupts();
    }
  }

  Co spin_as_head(Task& self, bool& taken) {
    std::optional<Duration> left = paravirt_.budget();
    while (co_await self.watch_for(left, line_, [this] { return word_.byte == Byte::kFree; })) {
      if (left) left = self.watch_left();
      // A stealer that looked before the pending byte was set may still come first.
      taken = co_await self.atomic(line_, [this] {
        if (word_.byte != Byte::kFree) return false;
        word_.byte = Byte::kLocked;
        word_.head_active = false;
        return true;
      });
      if (taken) co_return;
    }
  }

  Co set_head_active(Task& self, bool active) {
    if (params_.steal != Params::Steal::kNone) {
      co_await self.store(line_, [this, active] { word_.head_active = active; });
    }
  }

  Co insert(Task& self, Node& head) {
    co_await self.run(params_.hash_insert);
    co_await self.atomic(hash_entry_, [&] { hashed_ = &head; });
  }

  Paravirt paravirt_;
  Params params_;
  Duration check_period_;
  std::int64_t kick_ahead_;
  bool kick_at_lock_time_;
  const std::vector<std::unique_ptr<Vcpu>>& vcpus_;
  CacheLine line_;
  Word word_;
  CacheLine hash_entry_;
  Node* hashed_ = nullptr;
  std::vector<Node> nodes_;  // by vCPU; never resized
};

}  // namespace

namespace locks {
LockKind qspinlock();

LockKind pv_qspinlock() {
  return paravirt_lock_kind<PvQspinlock, qspinlock>("pv_qspinlock",
                                                    "queue lock whose waiters halt and are kicked, with stealing",
                                                    "kernel/locking/qspinlock_paravirt.h, Linux 4.2 to 6.17");
}
}  // namespace locks

}  // namespace vcpusim
