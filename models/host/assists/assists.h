// What a hypervisor may do for (or against) its guests: the parameters of each assist.
//
// An assist is a struct of parameters here, its entry for the catalogue in a file of its own beside this one, and
// code where it acts. A scenario that does not name an assist does not have it, and pays nothing for it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/catalogue.h"
#include "models/config.h"
#include "models/params.h"

namespace vcpusim {

// Pause-loop exiting: a vCPU that spins for long is taken out of guest mode. See ple.cpp.
struct PleParams {
  enum class Mode { kIntel, kAmd };
  Mode mode = Mode::kIntel;
  Cycles window{4096};
  std::int64_t count = 3000;
  std::int64_t grow = 2;
  std::int64_t shrink = 0;
  Cycles max_window{(std::int64_t{1} << 32) - 1};
  std::int64_t max_count = 65535;
  void describe(ParamVisitor& visitor);

  // Windows are counted in what the mode counts: cycles or PAUSEs.
  std::int64_t base() const { return mode == Mode::kIntel ? window.count : count; }
  std::int64_t grown(std::int64_t now) const;   // after an exit
  std::int64_t shrunk(std::int64_t now) const;  // when the vCPU is scheduled in
};

// What the host does when a vCPU spins: to whom it gives the pCPU. See directed_yield.cpp.
struct DirectedYieldParams {
  enum class Generation { k3_7, k4_14, k5_3, k5_13, k6_12, k6_19 };
  enum class Rule { kAuto, kOff, kOn };
  bool directed = true;
  Generation generation = Generation::k5_3;
  Rule woken = Rule::kAuto;
  Rule kernel_mode_only = Rule::kAuto;
  Rule interrupted = Rule::kAuto;
  Rule last_boosted_bug = Rule::kAuto;
  bool eligibility = true;
  Duration handler = std::chrono::microseconds(1);
  Duration per_candidate = std::chrono::nanoseconds(20);
  void describe(ParamVisitor& visitor);

  // The rules that are in force, whether named or by the generation.
  bool boosts_woken() const { return enabled(woken, generation >= Generation::k5_3); }
  bool boosts_kernel_mode_only() const { return enabled(kernel_mode_only, generation >= Generation::k4_14); }
  bool boosts_interrupted() const { return enabled(interrupted, generation >= Generation::k5_13); }
  bool has_last_boosted_bug() const { return enabled(last_boosted_bug, generation == Generation::k6_12); }

 private:
  static bool enabled(Rule rule, bool of_generation) { return rule == Rule::kAuto ? of_generation : rule == Rule::kOn; }
};

// Critical-section hint hypercall. See hint.cpp.
struct HintParams {
  enum class Mark { kKernel, kRequest, kOwner };
  enum class Fallback { kResume, kYield, kStock };
  Mark mark = Mark::kOwner;
  Fallback fallback = Fallback::kResume;
  Duration hypercall = std::chrono::microseconds(1);
  void describe(ParamVisitor& visitor);
};

// Polling before a halted vCPU gives up its pCPU. See halt_poll.cpp.
struct HaltPollParams {
  Duration max = std::chrono::microseconds(200);
  std::int64_t grow = 2;
  Duration grow_start = std::chrono::microseconds(10);
  std::int64_t shrink = 0;
  void describe(ParamVisitor& visitor);
};

// The host tells a guest what was stolen from its vCPUs, and whether they are on a pCPU. See steal_clock.cpp.
struct StealClockParams {
  bool halted_reads_preempted = false;
  void describe(ParamVisitor& visitor);
};

// TLB shootdowns skip vCPUs that are not running. See pv_tlb_flush.cpp.
struct PvTlbFlushParams {
  Duration flush = std::chrono::nanoseconds(200);
  void describe(ParamVisitor& visitor);
};

// One hypercall sends IPIs to many vCPUs. See pv_ipi.cpp.
struct PvIpiParams {
  std::int64_t targets = 128;
  bool yield = false;
  void describe(ParamVisitor& visitor);
};

// The assists of one host, as its scenario has them.
struct Assists {
  std::optional<PleParams> ple;
  DirectedYieldParams directed_yield;  // what a PLE exit leads to
  std::optional<HintParams> hint;
  std::optional<HaltPollParams> halt_poll;
  std::optional<StealClockParams> steal_clock;
  std::optional<PvTlbFlushParams> pv_tlb_flush;
  std::optional<PvIpiParams> pv_ipi;

  explicit Assists(const std::map<std::string, Kind>& on);
};

}  // namespace vcpusim
