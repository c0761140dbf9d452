// The event loop: simulated time and a set of timers, one per actor, each with at most one pending expiry.
//
// Events run in the order (time, sequence number of scheduling): of two timers that expire at the same instant,
// the one that was scheduled first runs first. Scheduling a pending timer again moves it and gives it a new
// sequence number, exactly as cancelling it and scheduling it afresh would.
//
// The pending timers form a tournament tree over fixed slots: the leaf of a timer never moves, each inner node
// holds the earlier of its two children, and a move replays the matches from the leaf to the root. There are no
// tombstones, nothing is allocated per event, and replacing the expiry that has just run costs one replay.
// Cost: log2(timers) comparisons for any operation; 48 bytes a timer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/check.h"
#include "sim/time.h"

namespace vcpusim {

class Engine {
 public:
  enum class TimerId : std::uint32_t {};

  Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // A new timer, idle, that calls actor.*Method() when it expires. `actor` must live as long as the engine runs.
  // At most 2^24 timers. Call as add_timer<&Actor::on_expiry>(actor).
  template <auto Method, class Actor>
  TimerId add_timer(Actor& actor) {
    return add_timer([](void* self) { (static_cast<Actor*>(self)->*Method)(); }, &actor);
  }

  SimTime now() const { return now_; }

  // Sets the one expiry of `timer`. REQUIRES at >= now().
  void schedule(TimerId timer, SimTime at) {
    SIM_DCHECK(at >= now_, "an event in the past");
    if (next_sequence_ == kSequences) renumber();
    set_key(slot_of(timer),
            {.time = at.time_since_epoch().count(), .order = (next_sequence_++ << kSlotBits) | slot_of(timer)});
  }

  // Forgets the expiry of `timer`, if any.
  void cancel(TimerId timer) {
    if (pending(timer)) set_key(slot_of(timer), kIdle);
  }

  bool pending(TimerId timer) const { return slot_of(timer) != firing_ && leaf(slot_of(timer)).time != kIdle.time; }
  // kNever if not pending.
  SimTime expiry(TimerId timer) const { return pending(timer) ? SimTime(Duration(leaf(slot_of(timer)).time)) : kNever; }

  // Runs events until none is left that is due at or before `limit`, or stop() is called; then, unless stopped,
  // the present is `limit`. An InvariantError that leaves a handler gets the simulated time added to its text.
  void run_until(SimTime limit);
  void stop() { stopped_ = true; }

  // For an actor that has just been called and whose next event would be at `at`: if no other event is due at or
  // before that time, lets time pass to it at once and returns true, as if the event had been scheduled and had
  // run. The caller must do nothing in this call that belongs to the time before. REQUIRES at >= now(), and to be
  // within a handler.
  bool try_advance(SimTime at) {
    if (firing_ != kNone) retire_firing();
    if (at.time_since_epoch().count() >= tree_[1].time || at > limit_ || stopped_) return false;
    now_ = at;
    ++events_;
    return true;
  }

  // Events that have run, those taken by try_advance included.
  std::uint64_t events() const { return events_; }
  std::size_t timers() const { return actors_.size(); }

 private:
  static constexpr unsigned kSlotBits = 24;
  static constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
  static constexpr std::uint64_t kSequences = std::uint64_t{1} << (64 - kSlotBits);
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Key {
    std::int64_t time;
    std::uint64_t order;  // sequence number, then slot: unique, so no two keys are equal
    bool operator==(const Key&) const = default;
  };
  static constexpr Key kIdle{kNever.time_since_epoch().count(), ~std::uint64_t{0}};

  struct Handler {
    void (*call)(void*);
    void* actor;
  };

  static std::uint32_t slot_of(TimerId timer) { return static_cast<std::uint32_t>(timer); }
  const Key& leaf(std::uint32_t slot) const { return tree_[capacity_ + slot]; }

  // Compared as one 128-bit number, without a branch: which child wins is not predictable.
  static bool earlier(const Key& a, const Key& b) {
    using Wide = detail::UInt128;
    return ((Wide{static_cast<std::uint64_t>(a.time)} << 64) | a.order) <
           ((Wide{static_cast<std::uint64_t>(b.time)} << 64) | b.order);
  }

  // The earlier of two, chosen without a branch and without a trip through memory: set_key waits for one such choice
  // after another. A plain conditional is best where it stays one; clang makes it a branch, which half the time costs
  // more than the whole loop.
  static Key earliest(const Key& a, const Key& b) {
#ifdef __clang__
    const std::uint64_t choose_a = 0 - std::uint64_t{earlier(a, b)};
    return {.time = b.time ^ ((a.time ^ b.time) & static_cast<std::int64_t>(choose_a)),
            .order = b.order ^ ((a.order ^ b.order) & choose_a)};
#else
    const bool choose_a = earlier(a, b);
    return {.time = choose_a ? a.time : b.time, .order = choose_a ? a.order : b.order};
#endif
  }

  void set_key(std::uint32_t slot, Key key) {
    if (slot == firing_) firing_ = kNone;
    std::size_t node = capacity_ + slot;
    Key* const tree = tree_.data();
    tree[node] = key;
    while (node > 1) {
      key = earliest(tree[node ^ 1], key);
      node >>= 1;
      tree[node] = key;
    }
  }

  void retire_firing() { set_key(firing_, kIdle); }

  TimerId add_timer(void (*call)(void*), void* actor);
  void fetch_ahead() const;
  void grow();
  void renumber();

  SimTime now_ = kTimeZero;
  SimTime limit_ = kTimeZero;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t events_ = 0;
  // The slot whose event is running while its leaf still holds the old expiry: a handler that schedules its own
  // timer again then pays for one replay, not two.
  std::uint32_t firing_ = kNone;
  bool stopped_ = false;
  std::size_t capacity_ = 1;  // leaves; a power of two
  std::vector<Key> tree_;     // [1] is the winner, [capacity_, 2 * capacity_) are the leaves
  std::vector<Handler> actors_;
};

}  // namespace vcpusim
