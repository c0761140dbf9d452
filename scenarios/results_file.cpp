#include "scenarios/results_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "scenarios/files.h"
#include "scenarios/json_document.h"
#include "scenarios/json_tokens.h"
#include "scenarios/results.h"

namespace vcpusim {
namespace {

constexpr std::string_view kResultsSchema = "vcpusim.results/1";

// The bytes of a file from a given one on to where the parser reads, and a little more.
class Window {
 public:
  explicit Window(const std::filesystem::path& file) : file_(std::fopen(file.c_str(), "rbe"), &std::fclose) {
    if (!file_) problem_ = error_text(errno);
  }
  explicit Window(std::string text) : file_(nullptr, &std::fclose), text_(std::move(text)) {}

  // The next byte to read. False at the end of the file, and where it cannot be read any further.
  bool more() { return read_ < text_.size() || refill(); }
  const char& next() const { return text_[read_]; }
  void advance() { ++read_; }

  // Offsets count from the start of the file.
  std::uint64_t offset() const { return dropped_ + read_; }
  // Forgets what stands before `offset`.
  void keep_from(std::uint64_t offset) { kept_ = static_cast<std::size_t>(offset - dropped_); }
  std::string_view read_from(std::uint64_t offset) const {
    return std::string_view(text_).substr(0, read_).substr(static_cast<std::size_t>(offset - dropped_));
  }

  std::string_view text() const { return text_; }  // that is not forgotten
  std::size_t read() const { return read_; }       // of text()
  std::pair<std::uint32_t, std::uint32_t> line_and_column(std::size_t in_text) const {
    const std::string_view before = std::string_view(text_).substr(0, in_text);
    const auto lines = static_cast<std::uint32_t>(std::ranges::count(before, '\n'));
    const std::size_t column = lines == 0 ? column_ + before.size() : before.size() - before.rfind('\n') - 1;
    return {line_ + lines, static_cast<std::uint32_t>(column + 1)};
  }

  const std::string& problem() const { return problem_; }  // why the file cannot be read
  const std::string& fault() const { return fault_; }      // why its text is not read any further

 private:
  bool refill() {
    constexpr std::size_t kPiece = std::size_t{1} << 16;
    if (!file_ || !problem_.empty() || !fault_.empty()) return false;
    if (read_ - kept_ > kMostJsonBytes) {
      fault_ = fmt::format("a part of the results is larger than {} MB", kMostJsonBytes >> 20);
      return false;
    }
    drop(kept_);
    const std::size_t have = text_.size();
    text_.resize(have + kPiece);
    const std::size_t got = std::fread(text_.data() + have, 1, kPiece, file_.get());
    text_.resize(have + got);
    if (std::ferror(file_.get()) != 0) {
      problem_ = error_text(errno);
      return false;
    }
    // The parser would take it for the end.
    if (const std::size_t nul = text_.find('\0', have); nul != std::string::npos) {
      fault_ = "a NUL byte (expected text in UTF-8)";
      text_.resize(nul);
      return nul > have;
    }
    return got > 0;
  }

  void drop(std::size_t count) {
    std::tie(line_, column_) = line_and_column(count);
    --column_;
    text_.erase(0, count);
    dropped_ += count;
    read_ -= count;
    kept_ = 0;
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string problem_;
  std::string fault_;
  std::string text_;
  std::size_t read_ = 0;
  std::size_t kept_ = 0;
  std::uint64_t dropped_ = 0;  // bytes before text_
  std::uint32_t line_ = 1;     // of the first byte of text_
  std::uint32_t column_ = 0;   // bytes before it in its line
};

class WindowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit WindowIterator(Window* window) : window_(window) {}  // null: the end
  reference operator*() const { return window_->next(); }
  WindowIterator& operator++() {
    window_->advance();
    return *this;
  }
  WindowIterator operator++(int) {
    WindowIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const WindowIterator& other) const { return at_end() == other.at_end(); }
  bool operator!=(const WindowIterator& other) const { return !(*this == other); }

 private:
  bool at_end() const { return window_ == nullptr || !window_->more(); }
  Window* window_;
};

// What a value is, by the object that it stands in and its key there.
enum class Part : std::uint8_t {
  kOther,  // unknown keys and all below them
  kRoot,
  kSchema,
  kVersion,
  kModels,
  kMissingRuns,
  kScenario,
  kName,
  kDigest,
  kResolved,
  kRuns,
  kRun,
  kPoint,
  kSeed,
  kReplication,
  kConfig,
  kEnded,
  kSimTime,
  kWhy,
  kMetrics,  // and all objects below them
};

struct Field {
  Part parent;
  std::string_view key;
  Part part;
  Json::Type type;
  bool required = true;
};

constexpr std::array kFields{
    Field{Part::kRoot, "schema", Part::kSchema, Json::Type::kString},
    Field{Part::kRoot, "vcpusim", Part::kVersion, Json::Type::kString},
    Field{Part::kRoot, "scenario", Part::kScenario, Json::Type::kObject},
    Field{Part::kRoot, "runs", Part::kRuns, Json::Type::kArray},
    Field{Part::kRoot, "models", Part::kModels, Json::Type::kString, false},
    Field{Part::kRoot, "missing_runs", Part::kMissingRuns, Json::Type::kNumber, false},
    Field{Part::kScenario, "name", Part::kName, Json::Type::kString},
    Field{Part::kScenario, "digest", Part::kDigest, Json::Type::kString},
    Field{Part::kScenario, "resolved", Part::kResolved, Json::Type::kObject},
    Field{Part::kRun, "point", Part::kPoint, Json::Type::kObject},
    Field{Part::kRun, "seed", Part::kSeed, Json::Type::kNumber},
    Field{Part::kRun, "replication", Part::kReplication, Json::Type::kNumber},
    Field{Part::kRun, "config", Part::kConfig, Json::Type::kString, false},
    Field{Part::kRun, "ended", Part::kEnded, Json::Type::kString},
    Field{Part::kRun, "sim_time_s", Part::kSimTime, Json::Type::kNumber},
    Field{Part::kRun, "why", Part::kWhy, Json::Type::kString, false},
    Field{Part::kRun, "metrics", Part::kMetrics, Json::Type::kObject},
};
constexpr Field kRootField{Part::kOther, "", Part::kRoot, Json::Type::kObject};
constexpr Field kRunField{Part::kRuns, "", Part::kRun, Json::Type::kObject};

std::string_view form_of(Json::Type type) {
  switch (type) {
    case Json::Type::kObject:
      return "expected an object";
    case Json::Type::kArray:
      return "expected an array";
    case Json::Type::kString:
      return "expected a text";
    default:
      return "expected a number";
  }
}

// A value without parts.
struct Scalar {
  Json::Type type;
  std::optional<std::uint64_t> count{};   // if it is a whole number from 0 on
  std::optional<std::int64_t> integer{};  // if it is a whole number of 64 bits
  double real = 0;
  std::string* text = nullptr;
};

std::optional<RunResult::Ended> ended_from(std::string_view name) {
  using enum RunResult::Ended;
  for (const auto ended : {kAtStop, kWorkloadsDone, kAtMost, kDeadlock}) {
    if (name_of(ended) == name) return ended;
  }
  return {};
}

// Follows the parser's events, with the open objects and arrays on a stack.
class ResultsReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  ResultsReader(Window& window, const ResultsVisitor& visitor, std::shared_ptr<const std::string> source,
                InputErrors& errors)
      : window_(window), visitor_(visitor), source_(std::move(source)), errors_(errors) {}

  bool null() override { return scalar({.type = Json::Type::kNull}); }
  bool boolean(bool) override { return scalar({.type = Json::Type::kBool}); }
  bool number_integer(number_integer_t number) override {
    return scalar({.type = Json::Type::kNumber, .integer = number, .real = static_cast<double>(number)});
  }
  bool number_unsigned(number_unsigned_t number) override {
    Scalar value{.type = Json::Type::kNumber, .count = number, .real = static_cast<double>(number)};
    if (std::in_range<std::int64_t>(number)) value.integer = static_cast<std::int64_t>(number);
    return scalar(value);
  }
  bool number_float(number_float_t real, const string_t&) override {
    return scalar({.type = Json::Type::kNumber, .real = real});
  }
  bool string(string_t& text) override { return scalar({.type = Json::Type::kString, .text = &text}); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::Type::kObject); }
  bool start_array(std::size_t) override { return open(Json::Type::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Level& level = levels_[depth_ - 1];
    level.key = key;
    if (level.part != Part::kMetrics) return true;
    path_.resize(level.path_length);
    if (!path_.empty()) path_ += '.';
    path_ += key;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    if (!window_.problem().empty()) {
      errors_.add_unreadable(*source_, window_.problem());
      return false;
    }
    if (!window_.fault().empty()) return fail(window_.text().size(), window_.fault());
    if (window_.text().empty()) return fail(0, "the file is empty (expected a JSON object)");
    return fail(syntax_error_offset(window_.text(), window_.read(), e.what()), syntax_error_reason(e.what()));
  }

 private:
  struct Level {
    Part part = Part::kOther;
    bool array = false;
    std::size_t index = 0;        // of the present item of an array
    std::string key;              // of the present member of an object
    std::uint32_t seen = 0;       // which of kFields
    std::uint64_t start = 0;      // offset in the file
    std::size_t path_length = 0;  // of path_, in kMetrics
  };

  bool fail(std::size_t in_text, std::string_view message) {
    const auto [line, column] = window_.line_and_column(in_text);
    std::string pointer;
    for (const Level& level : std::span(levels_).first(depth_)) {
      pointer = level.array ? child_pointer(pointer, level.index) : child_pointer(pointer, level.key);
    }
    errors_.add(Place{source_, line, column}, pointer, message);
    return false;
  }

  // Something is wrong with the scalar that was read last, or with the object or array that starts here.
  bool fail_here(Json::Type type, std::string_view message) {
    const std::string_view text = window_.text();
    std::size_t start = window_.read() - 1;
    if (type == Json::Type::kString) start = string_start(text, window_.read());
    if (type == Json::Type::kNumber) start = number_range(text, window_.read()).first;
    if (type == Json::Type::kNull || type == Json::Type::kBool) {
      while (text[start - 1] >= 'a' && text[start - 1] <= 'z') --start;
    }
    return fail(start, message);
  }

  // Finds out what the value is that starts here, and refuses it if it is of the wrong type or stands twice.
  bool enter(Json::Type type, Part& part) {
    part = Part::kOther;
    const Field* field = nullptr;
    if (depth_ == 0) {
      field = &kRootField;
    } else if (Level& parent = levels_[depth_ - 1]; parent.part == Part::kRuns) {
      field = &kRunField;
    } else if (parent.part == Part::kMetrics) {
      part = Part::kMetrics;
      const bool wrong = type == Json::Type::kArray || type == Json::Type::kBool;
      return !wrong || fail_here(type, "expected a number or a text");
    } else if (parent.part == Part::kRoot || parent.part == Part::kScenario || parent.part == Part::kRun) {
      const auto at =
          std::ranges::find_if(kFields, [&](const Field& f) { return f.parent == parent.part && f.key == parent.key; });
      if (at == kFields.end()) return true;
      const auto bit = std::uint32_t{1} << (at - kFields.begin());
      if ((parent.seen & bit) != 0) return fail_here(type, "the key stands twice in this object");
      parent.seen |= bit;
      field = &*at;
    }
    if (field == nullptr) return true;
    part = field->part;
    return type == field->type || fail_here(type, form_of(field->type));
  }

  void leave() {
    if (depth_ > 0 && levels_[depth_ - 1].array) ++levels_[depth_ - 1].index;
  }

  bool open(Json::Type type) {
    Part part{};
    if (!enter(type, part)) return false;
    if (part == Part::kRuns && !header_told_) {
      return fail_here(type, "expected \"schema\", \"vcpusim\" and \"scenario\" before the runs");
    }
    if (depth_ == levels_.size()) {
      return fail_here(type, fmt::format("nested deeper than {} levels", kDeepestJson));
    }
    const std::uint64_t start = window_.offset() - 1;
    if (depth_ <= 2) window_.keep_from(start);  // the parts that are looked at as a whole stand no higher than runs
    const bool inner = part == Part::kMetrics && levels_[depth_ - 1].part == Part::kMetrics;
    if (!inner) path_.clear();
    Level& level = levels_[depth_++];
    level.part = part;
    level.array = type == Json::Type::kArray;
    level.index = 0;
    level.seen = 0;
    level.start = start;
    level.path_length = path_.size();
    if (part == Part::kRun) start_run();
    return true;
  }

  bool close() {
    const Level& level = levels_[depth_ - 1];
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      const Field& field = kFields[i];
      if (field.parent != level.part || !field.required || (level.seen >> i & 1) != 0) continue;
      --depth_;
      return fail(window_.read() - 1, fmt::format("has no \"{}\"", field.key));
    }
    --depth_;
    const std::string_view text =
        level.part == Part::kResolved || level.part == Part::kPoint || level.part == Part::kRun
            ? window_.read_from(level.start)
            : std::string_view();
    bool good = true;
    if (level.part == Part::kResolved) header_.resolved = text;
    if (level.part == Part::kScenario) good = tell_header();
    if (level.part == Part::kPoint) good = read_point(text);
    if (level.part == Part::kRun) good = tell_run(text);
    leave();
    return good;
  }

  bool scalar(const Scalar& value) {
    Part part{};
    if (!enter(value.type, part)) return false;
    if (part == Part::kMetrics) return add_metric(value);
    if (!take(part, value)) return false;
    leave();
    return true;
  }

  bool take(Part part, const Scalar& value) {
    constexpr double kMostSeconds = 9e6;  // of simulated time: 63 bits of picoseconds
    RunResult& result = record_.result;
    switch (part) {
      case Part::kSchema:
        return *value.text == kResultsSchema || fail_here(value.type, wrong_schema(*value.text));
      case Part::kVersion:
        header_.vcpusim = std::move(*value.text);
        return true;
      case Part::kModels:
        header_.models = std::move(*value.text);
        return true;
      case Part::kMissingRuns:
        header_.missing_runs = value.count.value_or(0);
        return value.count || fail_here(value.type, "expected a whole number from 0 on");
      case Part::kName:
        header_.scenario = std::move(*value.text);
        return true;
      case Part::kDigest:
        header_.digest = std::move(*value.text);
        return true;
      case Part::kSeed:
        record_.seed = value.count.value_or(0);
        return value.count || fail_here(value.type, "expected a whole number from 0 on");
      case Part::kReplication:
        record_.replication = value.count.value_or(0);
        return value.count || fail_here(value.type, "expected a whole number from 0 on");
      case Part::kConfig:
        record_.config = std::move(*value.text);
        return true;
      case Part::kEnded: {
        const auto ended = ended_from(*value.text);
        result.ended = ended.value_or(RunResult::Ended::kAtStop);
        return ended || fail_here(value.type, "expected \"at\", \"workloads_done\", \"at_most\" or \"deadlock\"");
      }
      case Part::kSimTime:
        if (value.real < 0 || value.real > kMostSeconds) {
          return fail_here(value.type, fmt::format("expected from 0 to {} seconds", kMostSeconds));
        }
        result.sim_time = Duration(std::llround(value.real * 1e12));
        return true;
      case Part::kWhy:
        result.why = std::move(*value.text);
        return true;
      default:
        return true;
    }
  }

  static std::string wrong_schema(std::string_view schema) {
    constexpr std::string_view kFamily = "vcpusim.results/";
    std::string_view hint;
    if (schema.starts_with(kFamily)) hint = ": this version of vcpusim does not know others";
    if (schema.starts_with("vcpusim.scenario/")) hint = ": this is a scenario; vcpusim run makes results of it";
    return fmt::format("expected \"{}\"{}", kResultsSchema, hint);
  }

  // The schema is known by now, or this is no results file.
  bool tell_header() {
    const std::uint32_t seen = levels_[0].seen;
    if ((seen & 3) != 3) return fail(window_.read() - 1, "expected \"schema\" and \"vcpusim\" before the scenario");
    header_told_ = true;
    if (visitor_.header) visitor_.header(header_);
    return true;
  }

  void start_run() {
    record_.result.why.clear();
    record_.config.clear();
    metrics_ = 0;
  }

  // Points are the same for many runs on end.
  bool read_point(std::string_view text) {
    if (text == point_text_) return true;
    InputErrors wrong;
    const auto point = parse_json(text, source_, wrong);
    if (!point || !wrong.empty()) return fail(window_.read() - 1, "expected each path once");
    point_text_ = text;
    record_.point.clear();
    for (const Json::Member& member : point->members) record_.point.push_back({member.key, member.value});
    return true;
  }

  // Runs have the same metrics, mostly: what the last one had at this place is used again.
  bool add_metric(const Scalar& value) {
    if (value.type == Json::Type::kNull) return true;  // no number, as JSON has it
    Metrics& metrics = record_.result.metrics;
    if (metrics_ == metrics.size()) metrics.emplace_back();
    auto& [path, kept] = metrics[metrics_++];
    if (path != path_) {
      path = path_;
      new_path_ = true;
    }
    if (value.type == Json::Type::kString) {
      kept = *value.text;
    } else if (value.integer) {
      kept = *value.integer;
    } else {
      kept = value.real;
    }
    return true;
  }

  bool tell_run(std::string_view text) {
    Metrics& metrics = record_.result.metrics;
    metrics.resize(metrics_);
    if (new_path_) {
      std::vector<std::string_view> paths;
      for (const auto& metric : metrics) paths.emplace_back(metric.first);
      std::ranges::sort(paths);
      const auto twice = std::ranges::adjacent_find(paths);
      if (twice != paths.end()) return fail(window_.read() - 1, fmt::format("has the metric {} twice", *twice));
      new_path_ = false;
    }
    if (visitor_.run) visitor_.run(record_, text);
    return true;
  }

  Window& window_;
  const ResultsVisitor& visitor_;
  const std::shared_ptr<const std::string> source_;
  InputErrors& errors_;

  std::array<Level, kDeepestJson> levels_;
  std::size_t depth_ = 0;  // levels in use
  std::string path_;       // of the metric at hand

  ResultsHeader header_;
  bool header_told_ = false;
  RunRecord record_;
  std::string point_text_;   // of record_.point
  std::size_t metrics_ = 0;  // how many of the record's are of this run
  bool new_path_ = false;    // some of them are not those of the run before
};

}  // namespace

bool read_results(const std::filesystem::path& file, const ResultsVisitor& visitor, InputErrors& errors) {
  Window window(file);
  ResultsReader reader(window, visitor, std::make_shared<const std::string>(file.string()), errors);
  return nlohmann::json::sax_parse(WindowIterator(&window), WindowIterator(nullptr), &reader);
}

bool read_runs(const std::vector<std::string>& texts, const ResultsVisitor& visitor, InputErrors& errors) {
  std::string whole;
  ResultsWriter writer([&](std::string_view piece) { whole += piece; }, {"", "", "", "", "{}"});
  for (const std::string& text : texts) writer.run(text);
  writer.end_of_runs();
  writer.end();
  Window window(std::move(whole));
  ResultsReader reader(window, visitor, std::make_shared<const std::string>("runs"), errors);
  return nlohmann::json::sax_parse(WindowIterator(&window), WindowIterator(nullptr), &reader);
}

}  // namespace vcpusim
