// A scenario file, understood.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "scenarios/input_errors.h"
#include "scenarios/json_document.h"
#include "scenarios/scenario_visitor.h"

namespace vcpusim {

// What the mean over the replications of a metric must satisfy, at every point that agrees with `point`. With
// `relative_to`, it is the ratio of that mean to the mean at the point that differs in these coordinates.
struct Expectation {
  std::string metric;
  Point point;
  Point relative_to;
  std::optional<double> at_least;
  std::optional<double> at_most;
  std::string why;
};

// A figure that a source reports, in `unit` if that is not the metric's own, at one point. It is of the metric, of the
// metric over another one, or, with `relative_to`, of the ratio of either to its value at the point that differs in
// these coordinates.
struct PublishedFigure {
  std::string what;    // for people; may be empty
  std::string metric;  // a path, or a sum of paths: see metric_terms
  std::string over;    // "", or likewise
  Point point;
  Point relative_to;
  std::optional<double> value;      // none if the source only says on which side of a bound it is
  std::string unit;                 // "", or one of s, ms, us, ns for a metric in seconds or microseconds
  std::optional<double> tolerance;  // relative error that counts as reproduced: 0.05 is 5 %
  std::optional<double> at_least;   // bounds that count as reproduced
  std::optional<double> at_most;
  bool fitted = false;  // used for calibration, hence no prediction
};

// A sum such as "vms.a.cpu_s + 2 * vms.b.cpu_s - vms.c.cpu_s", with a space on each side of its signs, which names may
// contain. None if `sum` is none.
struct MetricTerm {
  double factor;
  std::string path;
};
std::optional<std::vector<MetricTerm>> metric_terms(std::string_view sum);

// How `vcpusim reproduce` runs the scenario, unless it is asked for the full size.
struct QuickRun {
  Point settings;
  double scale = 1;  // simulated spans of seconds are this much shorter than at full size
  std::string why;   // what the smaller size keeps
};

// A named cost whose value was fitted so that the model meets some of the published figures.
struct Calibration {
  std::string parameter;  // dotted path; has `value` in this scenario
  Json value;
  std::string fitted_on;
};

// The ratio of vCPUs to pCPUs as one value that can be set or varied: the path "overcommit". It is reached by adding
// copies of one VM, or by taking pCPUs away; to the nearest whole number of them.
struct Overcommit {
  enum class By { kNone, kCopies, kPcpus };
  By by = By::kNone;
  std::string vm;  // kCopies: whose
  std::optional<double> ratio;
};

struct Scenario {
  SimulationConfig simulation;
  Overcommit overcommit;
  std::string summary;
  std::vector<std::string> sources;
  std::vector<Expectation> expect;
  std::vector<Axis> vary;
  std::vector<PublishedFigure> published;
  QuickRun quick;
  std::vector<Calibration> calibrated;
};

void describe(Scenario& scenario, ScenarioVisitor& visitor);

// A value for a dotted path: the option --set, or a coordinate of a point.
struct Setting {
  std::string path;
  Json value;  // its place names where the setting came from
};

// The value is JSON if `text` is JSON, and a text otherwise. `origin` ("--seed 7") is what errors mention.
Setting make_setting(std::string_view origin, std::string_view path, std::string_view text);

// "vms.web.vcpus=4" as a setting. None, and an error, if it is no assignment. Errors mention `option` ("--set").
std::optional<Setting> parse_setting(std::string_view option, std::string_view assignment, InputErrors& errors);

// A scenario file before its values are understood: what settings can still be applied to.
class ScenarioDocument {
 public:
  // None if the file cannot be read or is no JSON.
  static std::optional<ScenarioDocument> open(const std::filesystem::path& file, InputErrors& errors);
  // `folder` is where program files are looked for, `name` what errors call the document.
  static std::optional<ScenarioDocument> parse(std::string_view text, std::string_view name,
                                               const std::filesystem::path& folder, InputErrors& errors);

  // Whether the document says of itself that it is one.
  bool is_scenario() const;

  std::vector<Axis> axes() const;  // of its `vary`, as far as that is one

  // From now on the scenario varies along these axes, too, or has these values on an axis that it has.
  void vary(std::vector<Axis> axes);

  // The scenario with these settings, applied in order; a later one wins. A setting of an axis of `vary` leaves
  // that axis with this one value. None if anything is wrong; `errors` then has all of it.
  std::optional<Scenario> load(std::span<const Setting> settings, InputErrors& errors) const;

 private:
  ScenarioDocument(Json root, std::filesystem::path folder) : root_(std::move(root)), folder_(std::move(folder)) {}

  Json root_;
  std::filesystem::path folder_;
  std::vector<Axis> axes_;  // of vary()
};

// The whole scenario with every default filled in, as JSON text: --print-config, and `scenario.resolved` of the
// results. Loads to an equal scenario.
std::string resolved_text(const Scenario& scenario);

// Lower-case hexadecimal SHA-256 of the resolved scenario in its shortest form.
std::string digest(const Scenario& scenario);

// Of what a run depends on, except for its seed and the version of the models: 16 hexadecimal digits.
std::string config_digest(const SimulationConfig& config);

}  // namespace vcpusim
