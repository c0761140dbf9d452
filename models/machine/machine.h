// The machine that the pCPUs belong to: who is how far from whom, and what that costs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "models/machine/machine_config.h"
#include "sim/engine.h"
#include "sim/time.h"

namespace vcpusim {

// Index of a logical CPU of the host, from 0.
enum class PcpuId : std::uint32_t {};
inline constexpr PcpuId kNoPcpu{~std::uint32_t{0}};
constexpr std::uint32_t index_of(PcpuId id) { return static_cast<std::uint32_t>(id); }

enum class Distance : std::uint8_t { kSameCpu, kSameCore, kSameSocket, kOneHop, kTwoHops };
inline constexpr std::size_t kDistances = 5;

class Machine {
 public:
  // pCPUs are numbered socket by socket, core by core; SMT siblings are neighbours. REQUIRES pcpus <= logical CPUs.
  Machine(const MachineConfig& config, std::int64_t pcpus, Engine& engine);

  Engine& engine() const { return engine_; }
  const MachineConfig& config() const { return config_; }
  std::uint32_t pcpus() const { return static_cast<std::uint32_t>(places_.size()); }
  std::uint32_t socket_of(PcpuId pcpu) const { return places_[index_of(pcpu)].socket; }
  std::uint32_t core_of(PcpuId pcpu) const { return places_[index_of(pcpu)].core; }  // unique in the machine

  Distance distance(PcpuId a, PcpuId b) const {
    if (a == b) return Distance::kSameCpu;
    if (uniform_) return diameter_;
    const Place& p = places_[index_of(a)];
    const Place& q = places_[index_of(b)];
    if (p.socket != q.socket) return p.island == q.island ? Distance::kOneHop : Distance::kTwoHops;
    return p.core == q.core ? Distance::kSameCore : Distance::kSameSocket;
  }

  // The largest distance between any two pCPUs in use, and whether any two of them are that far apart.
  Distance diameter() const { return diameter_; }
  bool uniform() const { return uniform_; }

  // A line transfer, in the two parts that MachineCosts::snoop_share divides it into.
  struct Transfer {
    Duration to_holder;
    Duration to_requester;
  };
  Transfer load(Distance d) const { return load_[static_cast<std::size_t>(d)]; }
  Transfer store(Distance d) const { return store_[static_cast<std::size_t>(d)]; }
  Duration load_shared(Distance d) const { return load_shared_[static_cast<std::size_t>(d)]; }
  Duration local_access() const { return config_.costs.local_access; }
  Duration local_atomic() const { return config_.costs.local_atomic; }
  Duration pause() const { return config_.costs.pause; }
  // A core whose threads are both busy: how long `work` takes, and what gets done in `time`. Both round so that work
  // never ends early.
  Duration time_on_shared_core(Duration work) const {
    return Duration{detail::mul_div_up(work.count(), kPerMille, smt_speed_)};
  }
  Duration work_on_shared_core(Duration time) const { return time * smt_speed_ / kPerMille; }
  const TransitionCosts& transitions() const { return config_.costs.transitions; }

 private:
  static constexpr std::int64_t kPerMille = 1000;

  struct Place {
    std::uint32_t socket;
    std::uint32_t core;
    std::uint32_t island;  // sockets of one island are directly linked
  };

  MachineConfig config_;
  Engine& engine_;
  std::int64_t smt_speed_;  // in thousandths
  std::vector<Place> places_;
  Distance diameter_ = Distance::kSameCpu;
  bool uniform_ = false;
  std::array<Transfer, kDistances> load_{};
  std::array<Transfer, kDistances> store_{};
  std::array<Duration, kDistances> load_shared_{};
};

}  // namespace vcpusim
