#include "scenarios/run_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "scenarios/results_file.h"

namespace vcpusim {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view what) {
  throw FileError(fmt::format("{}: {}: {}", file.string(), what, error_text(errno)));
}

}  // namespace

RunStore::RunStore(std::filesystem::path file, const ResultsHeader& header)
    : file_(std::move(file)), data_(::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!data_.open()) fail(file_, "cannot be written");
  ResultsWriter([this](std::string_view piece) { append(piece); }, header);
}

RunStore::RunStore(UnnamedIn, const std::filesystem::path& folder) {
  std::string name = (folder / "vcpusim.XXXXXX").string();
  data_ = Descriptor(::mkstemp(name.data()));
  file_ = name;
  if (!data_.open()) fail(file_, "cannot be written");
  ::unlink(name.c_str());
}

void RunStore::rename(const std::filesystem::path& file) {
  if (::rename(file_.c_str(), file.c_str()) != 0) fail(file, "cannot be written");
  file_ = file;
}

void RunStore::remove() { ::unlink(file_.c_str()); }

void RunStore::append(std::string_view text) {
  // What follows a failure would not stand where it is looked for.
  if (broken_ || !write_all(data_, text)) {
    broken_ = true;
    fail(file_, "cannot be written");
  }
  size_ += text.size();
}

bool RunStore::add(const RunTask& task, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (sealed_) return false;
  if (places_.size() <= task.point) places_.resize(task.point + 1);
  auto& replications = places_[task.point];
  if (replications.size() <= task.replication) replications.resize(task.replication + 1);
  Place& place = replications[task.replication];
  if (place.length > 0) return false;
  append(runs_ == 0 ? "\n  " : ",\n  ");
  const std::uint64_t offset = size_;
  append(text);
  place = {offset, static_cast<std::uint32_t>(text.size())};
  ++runs_;
  return true;
}

void RunStore::add_summary(std::size_t point, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (summaries_.size() <= point) summaries_.resize(point + 1);
  const std::uint64_t offset = size_;
  append(text);
  summaries_[point] = {offset, static_cast<std::uint32_t>(text.size())};
}

void RunStore::seal() {
  const std::lock_guard lock(mutex_);
  sealed_ = true;
}

std::size_t RunStore::missing(std::span<const std::size_t> replications) const {
  const std::lock_guard lock(mutex_);
  std::size_t missing = 0;
  for (std::size_t point = 0; point < replications.size(); ++point) {
    missing += replications[point];
    if (point >= places_.size()) continue;
    const auto& places = places_[point];
    const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min(places.size(), replications[point]));
    missing -=
        static_cast<std::size_t>(std::count_if(places.begin(), end, [](const Place& p) { return p.length > 0; }));
  }
  return missing;
}

std::string RunStore::write_results(const std::filesystem::path& file, const ResultsHeader& header,
                                    std::span<const std::size_t> replications, const Summaries& summaries) const {
  const std::lock_guard lock(mutex_);
  NewFile out(file);
  ResultsWriter writer([&](std::string_view piece) { out.write(piece); }, header);
  // The summaries stand behind the runs, but each is known with its point's runs.
  RunStore kept(unnamed_in, file_.parent_path());
  std::vector<std::pair<const RunStore*, Place>> kept_summaries;
  std::vector<RunRecord> records;
  std::vector<std::string> texts;
  const auto read = [](const RunStore& store, const Place& place) {
    std::string text(place.length, '\0');
    if (!read_all(store.data_, place.offset, text)) fail(store.file_, "cannot be read");
    return text;
  };
  for (std::size_t point = 0; point < places_.size(); ++point) {
    texts.clear();
    records.clear();
    const std::size_t most = replications.empty() ? places_[point].size() : replications[point];
    for (const Place& place : places_[point] | std::views::take(most)) {
      if (place.length == 0) continue;
      writer.run(texts.emplace_back(read(*this, place)));
    }
    if (texts.empty()) continue;
    if (point < summaries_.size() && summaries_[point].length > 0) {
      kept_summaries.emplace_back(this, summaries_[point]);
      continue;
    }
    InputErrors errors;
    const auto keep = [&](const RunRecord& record, std::string_view) { records.push_back(record); };
    if (!read_runs(texts, {{}, keep}, errors)) throw std::runtime_error(errors.lines().front());
    const PointSummary summary = summarise_points(records).front();
    if (summaries) summaries(summary, records);
    const std::string text = summary_text(summary);
    kept_summaries.emplace_back(&kept, Place{kept.size_, static_cast<std::uint32_t>(text.size())});
    kept.append(text);
  }
  writer.end_of_runs();
  for (const auto& [store, place] : kept_summaries) writer.summary(read(*store, place));
  writer.end();
  return out.commit();
}

}  // namespace vcpusim
