#include "tools/vcpusim/trace_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "models/trace_kinds.h"
#include "scenarios/files.h"
#include "scenarios/points.h"

namespace vcpusim {
namespace {

class Lines final : public TraceSink {
 public:
  explicit Lines(std::FILE* file) : file_(file) {}
  void record(const TraceRecord& r) override {
    fmt::print(file_, "{{\"t_ps\": {}, \"kind\": \"{}\", \"subject\": {}, \"object\": {}, \"value\": {}}}\n",
               r.time.time_since_epoch().count(), name_of(static_cast<TraceKind>(r.kind)), r.subject, r.object,
               r.value);
  }

 private:
  std::FILE* file_;
};

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& file) : file_(std::fopen(file.c_str(), "w")) {
  if (!file_) problem_ = error_text(errno);
}

std::unique_ptr<TraceSink> TraceFile::start_run(std::size_t run, const Point& point, std::uint64_t seed) {
  fmt::print(file_.get(), "{{\"schema\": \"vcpusim.trace/1\", \"run\": {}, \"point\": {}, \"seed\": {}}}\n", run,
             point_text(point), seed);
  return std::make_unique<Lines>(file_.get());
}

std::string TraceFile::close() {
  if (!file_) return problem_;
  const bool written = std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0;
  const std::string problem = written ? "" : error_text(errno);
  file_.reset();
  return problem;
}

}  // namespace vcpusim
