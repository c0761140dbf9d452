// The commands that run no simulation: validate, schema, list, describe.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>

#include "scenarios/kind_parameters.h"
#include "scenarios/library.h"
#include "scenarios/points.h"
#include "scenarios/scenario.h"
#include "scenarios/schema.h"
#include "scenarios/text_forms.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

std::string kinds_text(std::string_view family) {
  TextTable table({"NAME", "SUMMARY"});
  for (const KindDescription& kind : all_kinds()) {
    if (kind.family == family) table.add({kind.name, kind.summary});
  }
  return table.text();
}

std::string metrics_text() {
  std::string text;
  for (const std::string& path : metric_paths()) text += path + "\n";
  return text;
}

std::string scenarios_text() {
  TextTable table({"NAME", "FILE", "SUMMARY"});
  for (const LibraryEntry& entry : scenarios_below(library_folder())) {
    table.add({entry.name, std::filesystem::proximate(entry.file).string(), entry.summary});
  }
  return table.text();
}

struct Listing {
  std::string name;
  std::function<std::string()> text;
};

const std::vector<Listing>& listings() {
  static const std::vector<Listing> kAll{{"locks", [] { return kinds_text("lock"); }},
                                         {"schedulers", [] { return kinds_text("scheduler"); }},
                                         {"assists", [] { return kinds_text("assist"); }},
                                         {"machines", [] { return kinds_text("machine"); }},
                                         {"operations", [] { return kinds_text("operation"); }},
                                         {"metrics", metrics_text},
                                         {"scenarios", scenarios_text}};
  return kAll;
}

}  // namespace

// Installed, the library is ../share/vcpusim/scenarios from the program; else it is where the program was built from.
std::filesystem::path library_folder() {
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  const auto installed = program.parent_path().parent_path() / "share/vcpusim/scenarios";
  return !problem && std::filesystem::is_directory(installed, problem) ? installed : VCPUSIM_SCENARIO_FOLDER;
}

int validate_command(const Command& command, const Texts& arguments) {
  const auto values = parse_command(command, arguments, po::options_description("Options"));
  if (values.contains("help")) return kExitDone;
  const Texts& files = values["arguments"].as<Texts>();
  if (files.empty()) throw UsageError("expected at least one scenario file");
  int worst = kExitDone;
  for (const std::string& file : files) {
    InputErrors errors;
    const auto document = ScenarioDocument::open(file, errors);
    const auto scenario = document ? document->load({}, errors) : std::nullopt;
    if (scenario) check_points(*document, {}, all_points(scenario->vary), errors);
    if (errors.empty()) {
      print_out(file + ": valid\n");
    } else {
      worst = std::max(worst, report_errors(errors));
    }
  }
  return worst;
}

int schema_command(const Command& command, const Texts& arguments) {
  const auto values = parse_command(command, arguments, po::options_description("Options"));
  if (values.contains("help")) return kExitDone;
  if (!values["arguments"].as<Texts>().empty()) throw UsageError("expected no argument");
  print_out(schema_text());
  return kExitDone;
}

int list_command(const Command& command, const Texts& arguments) {
  const auto values = parse_command(command, arguments, po::options_description("Options"));
  if (values.contains("help")) return kExitDone;
  const Texts& asked = values["arguments"].as<Texts>();
  if (asked.empty()) {
    std::string text;
    for (const Listing& listing : listings())
      text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", listing.name, listing.text());
    print_out(text);
    return kExitDone;
  }
  for (const std::string& name : asked) {
    const auto listing = std::ranges::find(listings(), name, &Listing::name);
    if (listing == listings().end()) {
      Texts names;
      for (const Listing& known : listings()) names.push_back(known.name);
      throw UsageError(fmt::format("no list \"{}\"{}", name, known_instead(name, names)));
    }
    print_out(listing->text());
  }
  return kExitDone;
}

int describe_command(const Command& command, const Texts& arguments) {
  const auto values = parse_command(command, arguments, po::options_description("Options"));
  if (values.contains("help")) return kExitDone;
  const Texts& asked = values["arguments"].as<Texts>();
  if (asked.size() != 1) throw UsageError(fmt::format("expected the name of one kind; got {}", asked.size()));
  Texts names;
  std::string text;
  for (const KindDescription& kind : all_kinds()) {
    names.push_back(kind.name);
    if (kind.name != asked.front()) continue;
    text += fmt::format("{}{} ({})\n  {}\n", text.empty() ? "" : "\n", kind.name, kind.family, kind.summary);
    if (!kind.source.empty()) text += fmt::format("  Source: {}\n", kind.source);
    if (kind.parameters.empty()) {
      text += "  No parameters.\n";
      continue;
    }
    TextTable table({"PARAMETER", "VALUE", "DEFAULT", "MEANING"});
    for (const ParameterLine& p : kind.parameters) table.add({p.key, p.form, p.fallback, p.help});
    text += "\n" + table.text();
  }
  if (text.empty())
    throw UsageError(fmt::format("no kind \"{}\"{}", asked.front(), known_instead(asked.front(), names)));
  print_out(text);
  return kExitDone;
}

}  // namespace vcpusim
