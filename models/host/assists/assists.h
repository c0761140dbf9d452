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
  void describe(ParamVisitor& visitor);
};

// What the host does when a vCPU spins: to whom it gives the pCPU. See directed_yield.cpp.
struct DirectedYieldParams {
  enum class Candidates { kPreempted, kReady };
  bool directed = true;
  Candidates candidates = Candidates::kReady;
  bool kernel_mode_only = true;
  bool eligibility = true;
  bool last_boosted_bug = false;
  Duration handler = std::chrono::microseconds(1);
  Duration per_candidate = std::chrono::nanoseconds(20);
  void describe(ParamVisitor& visitor);
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
  void describe(ParamVisitor&) {}
};

// The assists of one host, as its scenario has them.
struct Assists {
  std::optional<PleParams> ple;
  DirectedYieldParams directed_yield;  // what a PLE exit leads to
  std::optional<HintParams> hint;
  std::optional<HaltPollParams> halt_poll;
  std::optional<StealClockParams> steal_clock;
  std::optional<PvTlbFlushParams> pv_tlb_flush;

  explicit Assists(const std::map<std::string, Kind>& on);
};

}  // namespace vcpusim
