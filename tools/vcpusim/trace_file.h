// Trace records as lines of JSON, written as they come.
//
// Each run starts with a line {"schema": "vcpusim.trace/1", "run": ..., "point": {...}, "seed": ...}; the lines after
// it, up to the next such line, are its records: {"t_ps", "kind", "subject", "object", "value"},
// as models/trace_kinds.h explains them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "scenarios/scenario.h"
#include "sim/trace.h"

namespace vcpusim {

class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& file);
  std::string problem() const { return problem_; }  // why the file could not be opened; "" if it could

  // The sink for one run; the file must outlive it. One at a time.
  std::unique_ptr<TraceSink> start_run(std::size_t run, const Point& point, std::uint64_t seed);

  std::string close();  // what went wrong with any of the writing, or ""

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string problem_;
};

}  // namespace vcpusim
