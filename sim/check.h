// Invariants. A broken invariant is a bug of the simulator, never a mistake of its user.
//
// SIM_CHECK is always on; SIM_DCHECK only where NDEBUG is not defined, for checks too dear for every event.
// A failure throws InvariantError, whose text names the place, the condition and a message; Engine adds the
// simulated time, and whoever runs the scenario adds the seed and the command that repeats the run.
#pragma once

#include <stdexcept>
#include <string>

namespace vcpusim {

class InvariantError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void invariant_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace vcpusim

#define SIM_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void() : ::vcpusim::invariant_failed(__FILE__, __LINE__, #condition, (message)))

#ifdef NDEBUG
#define SIM_DCHECK(condition, message) (true ? void() : void(condition))
#else
#define SIM_DCHECK(condition, message) SIM_CHECK(condition, message)
#endif
