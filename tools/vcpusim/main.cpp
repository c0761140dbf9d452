// vcpusim: the command line. Finds the command, says what is wrong with it, and returns the exit status.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/files.h"
#include "scenarios/text_forms.h"
#include "scenarios/version.h"
#include "tools/vcpusim/command.h"
#include "tools/vcpusim/terminal.h"

namespace vcpusim {

namespace po = boost::program_options;

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"run", "FILE", "run a scenario, at each of its points", run_command},
      Command{"sweep", "FILE", "run all points of a scenario's axes, and of those given here", sweep_command},
      Command{"merge", "SHARD.json...", "put the shards of one sweep together", merge_command},
      Command{"compare", "A.json B.json", "tell whether two results differ, metric by metric", compare_command},
      Command{"plan", "FILE", "find how far overcommit can go before a target is missed", plan_command},
      Command{"reproduce", "[NAME]...", "run published experiments, and judge how well they are met",
              reproduce_command},
      Command{"validate", "FILE...", "check scenario files without running them", validate_command},
      Command{"schema", "", "print the JSON Schema of scenario files", schema_command},
      Command{"list", "[locks|machines|operations|metrics|scenarios]", "list what there is", list_command},
      Command{"describe", "KIND", "explain a lock, machine or operation and its parameters", describe_command},
  };
  return kCommands;
}

po::variables_map parse_command(const Command& command, const std::vector<std::string>& arguments,
                                po::options_description options) {
  options.add_options()("help", "print this help");
  po::options_description all;
  all.add(options).add_options()("arguments", po::value<std::vector<std::string>>()->default_value({}, ""));
  po::positional_options_description positional;
  positional.add("arguments", -1);
  po::variables_map values;
  try {
    using po::command_line_style::style_t;
    // Without guessing of abbreviated options: a script must not change its meaning with a new option.
    const int style = style_t::unix_style & ~style_t::allow_guessing;
    po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(), values);
    po::notify(values);
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  if (values.contains("help")) {
    std::string text = fmt::format("vcpusim {} [OPTION]...{}{}\n\n{}\n", command.name,
                                   command.arguments.empty() ? "" : " ", command.arguments, command.summary);
    std::ostringstream list;
    list << options;
    print_out(text + "\n" + list.str());
  }
  return values;
}

std::size_t count_option(const po::variables_map& values, const char* name, std::size_t fallback, std::size_t most) {
  if (!values.contains(name)) return fallback;
  const auto value = values[name].as<long long>();
  if (value < 1 || static_cast<unsigned long long>(value) > most) {
    throw UsageError(fmt::format("--{}: expected from 1 to {}; got {}", name, most, value));
  }
  return static_cast<std::size_t>(value);
}

namespace {

std::string help_text() {
  std::string text =
      "vcpusim COMMAND [OPTION]... [ARGUMENT]...\n\nSimulates overcommitted vCPU scheduling.\n\nCommands:\n";
  for (const Command& command : commands()) text += fmt::format("  {:<10}{}\n", command.name, command.summary);
  text +=
      "\nOptions:\n  --help    print this help; after a command, its own\n  --version print the version\n\n"
      "Exit status: 0 done; 1 an expectation does not hold; 2 wrong input; 3 a file cannot be read or written;\n"
      "130 interrupted, with what was finished saved.\n";
  return text;
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_error(help_text());
    return kExitWrongInput;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    print_out(help_text());
    return kExitDone;
  }
  if (name == "--version") {
    print_out(fmt::format("vcpusim {}\n", version()));
    return kExitDone;
  }
  const auto command = std::ranges::find(commands(), name, &Command::name);
  if (command == commands().end()) {
    std::vector<std::string> names;
    for (const Command& known : commands()) names.emplace_back(known.name);
    print_error(fmt::format("vcpusim: no command \"{}\"{} (see vcpusim --help)\n", name, suggestion(name, names)));
    return kExitWrongInput;
  }
  try {
    return command->run(*command, {arguments.begin() + 1, arguments.end()});
  } catch (const UsageError& e) {
    print_error(fmt::format("vcpusim {}: {} (see vcpusim {} --help)\n", name, e.what(), name));
    return kExitWrongInput;
  } catch (const FileError& e) {
    print_error(fmt::format("{}\n", e.what()));
    return kExitFile;
  }
}

}  // namespace
}  // namespace vcpusim

int main(int argc, char** argv) {
  // A reader of our output that goes away is no reason to lose a results file: writing fails quietly instead.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return vcpusim::dispatch({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    vcpusim::print_error(fmt::format("vcpusim: {}\n", e.what()));
    return vcpusim::kExitFailed;
  }
}
