// Trace records: what happened in a run, for whoever wants to watch.
//
// A model that traces holds a TraceSink* and, where it is not null, hands it a record at each of its transitions.
// Watching never changes a run: a sink gets copies, returns nothing, and must neither schedule an event nor draw a
// random number. It is called in the order of events, so the times of its records never decrease.
#pragma once

#include <cstdint>

#include "sim/time.h"

namespace vcpusim {

struct TraceRecord {
  SimTime time;
  std::uint16_t kind = 0;     // numbered and explained by the models
  std::uint32_t subject = 0;  // who: the meaning depends on the kind, as that of the next two
  std::uint32_t object = 0;   // upon whom or what
  std::int64_t value = 0;     // how much

  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void record(const TraceRecord& record) = 0;

 protected:
  TraceSink() = default;
  TraceSink(const TraceSink&) = default;
  TraceSink& operator=(const TraceSink&) = default;
};

}  // namespace vcpusim
