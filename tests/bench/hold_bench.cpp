// The hold model: N pending events, each of which, when it runs, schedules one more after an exponential delay.
//
//   hold/N   over the engine's public interface
//   proxy/N  the same events in the same order in a bare four-ary heap: what the machine of the day can do at all
//
// Compare the two, not either with a figure from elsewhere, and run them in turn:
//   vcpusim_bench --benchmark_filter='hold|proxy' --benchmark_enable_random_interleaving --benchmark_repetitions=9
#include <benchmark/benchmark.h>

#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/distribution.h"
#include "sim/engine.h"
#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {
namespace {

constexpr Duration kMeanDelay = std::chrono::milliseconds(1);
constexpr std::uint64_t kSeed = 1;

// The time in which about 10,000 events run.
Duration span_of(std::size_t pending) { return kMeanDelay * 10'000 / static_cast<std::int64_t>(pending); }

struct Hold {
  struct Actor {
    void on_expiry() { model->schedule(*this); }

    Hold* model;
    Engine::TimerId timer;
  };

  explicit Hold(std::size_t pending) : actors(pending) {
    for (Actor& actor : actors) {
      actor = {this, engine.add_timer<&Actor::on_expiry>(actor)};
      schedule(actor);
    }
  }

  void schedule(const Actor& actor) { engine.schedule(actor.timer, engine.now() + delay.draw(random)); }

  Engine engine;
  RandomStream random{kSeed, "hold", "delay"};
  Distribution delay = Distribution::exponential(kMeanDelay);
  std::vector<Actor> actors;
};

void hold(benchmark::State& state) {
  const auto pending = static_cast<std::size_t>(state.range(0));
  Hold model(pending);
  // Twice round, so that the structure is in its steady state.
  model.engine.run_until(kTimeZero + 2 * kMeanDelay);
  const std::uint64_t before = model.engine.events();
  for (auto _ : state) model.engine.run_until(model.engine.now() + span_of(pending));
  state.SetItemsProcessed(static_cast<std::int64_t>(model.engine.events() - before));
}

// A four-ary heap of 16-byte keys. The root is element 3, so that each group of four siblings, the children of i
// being 4i - 8 to 4i - 5, is one cache line.
class Heap {
 public:
  struct Key {
    std::int64_t time;
    std::uint64_t sequence;
  };

  const Key& top() const { return keys_[kRoot]; }

  void push(Key key) {
    std::size_t hole = keys_.size();
    keys_.push_back(key);
    while (hole != kRoot) {
      const std::size_t parent = hole / 4 + 2;
      if (!earlier(key, keys_[parent])) break;
      keys_[hole] = keys_[parent];
      hole = parent;
    }
    keys_[hole] = key;
  }

  void pop() {
    const Key key = keys_.back();
    keys_.pop_back();
    const std::size_t size = keys_.size();
    if (size == kRoot) return;
    Key* const keys = keys_.data();
    std::size_t hole = kRoot;
    std::size_t child = 4 * hole - 8;
    for (; child + 4 <= size; child = 4 * hole - 8) {
      // Two pairs, then the winners: half the chain of comparisons, none of which could be predicted.
      const std::size_t left = child + (earlier(keys[child + 1], keys[child]) ? 1 : 0);
      const std::size_t right = child + 2 + (earlier(keys[child + 3], keys[child + 2]) ? 1 : 0);
      const std::size_t first = earlier(keys[right], keys[left]) ? right : left;
      if (!earlier(keys[first], key)) break;
      keys[hole] = keys[first];
      hole = first;
    }
    if (child < size && child + 4 > size) {
      std::size_t first = child;
      for (std::size_t i = child + 1; i < size; ++i) {
        if (earlier(keys[i], keys[first])) first = i;
      }
      if (earlier(keys[first], key)) {
        keys[hole] = keys[first];
        hole = first;
      }
    }
    keys[hole] = key;
  }

 private:
  static constexpr std::size_t kRoot = 3;

  static bool earlier(const Key& a, const Key& b) {
    __extension__ using Wide = unsigned __int128;
    return ((Wide{static_cast<std::uint64_t>(a.time)} << 64) | a.sequence) <
           ((Wide{static_cast<std::uint64_t>(b.time)} << 64) | b.sequence);
  }

  std::vector<Key, boost::alignment::aligned_allocator<Key, 64>> keys_{kRoot};
};

void proxy(benchmark::State& state) {
  const auto pending = static_cast<std::size_t>(state.range(0));
  Heap heap;
  RandomStream random{kSeed, "hold", "delay"};
  const Distribution delay = Distribution::exponential(kMeanDelay);
  std::uint64_t sequence = 0;
  const auto run_until = [&](std::int64_t limit) {
    while (heap.top().time <= limit) {
      const std::int64_t now = heap.top().time;
      heap.pop();
      heap.push({now + delay.draw(random).count(), sequence++});
    }
  };

  while (sequence < pending) heap.push({delay.draw(random).count(), sequence++});
  std::int64_t now = 2 * kMeanDelay.count();
  run_until(now);
  const std::uint64_t before = sequence;
  for (auto _ : state) run_until(now += span_of(pending).count());
  state.SetItemsProcessed(static_cast<std::int64_t>(sequence - before));
}

BENCHMARK(hold)->Arg(64)->Arg(1024)->Arg(16384)->Arg(262144);
BENCHMARK(proxy)->Arg(64)->Arg(1024)->Arg(16384)->Arg(262144);

}  // namespace
}  // namespace vcpusim
