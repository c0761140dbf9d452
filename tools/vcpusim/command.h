// What the commands of the program have in common.
#pragma once

#include <boost/program_options.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"

namespace vcpusim {

enum ExitStatus : int {
  kExitDone = 0,
  kExitFailed = 1,      // it ran, but an expectation does not hold, or the run could not end
  kExitWrongInput = 2,  // the input or the command line is wrong; nothing was run
  kExitFile = 3,        // a file could not be read or written
  kExitInterrupted = 130,
};

struct Command {
  std::string_view name;
  std::string_view arguments;  // "FILE..."
  std::string_view summary;
  int (*run)(const Command& command, const std::vector<std::string>& arguments);
};

// In the order of the help.
std::span<const Command> commands();

int run_command(const Command& command, const std::vector<std::string>& arguments);
int compare_command(const Command& command, const std::vector<std::string>& arguments);
int plan_command(const Command& command, const std::vector<std::string>& arguments);
int sweep_command(const Command& command, const std::vector<std::string>& arguments);
int merge_command(const Command& command, const std::vector<std::string>& arguments);
int reproduce_command(const Command& command, const std::vector<std::string>& arguments);
int validate_command(const Command& command, const std::vector<std::string>& arguments);
int schema_command(const Command& command, const std::vector<std::string>& arguments);
int list_command(const Command& command, const std::vector<std::string>& arguments);
int describe_command(const Command& command, const std::vector<std::string>& arguments);

// The command line is wrong: main says so and returns kExitWrongInput.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The command's options are what the user may write with dashes; whatever else they write is in "arguments", a
// vector of strings. Adds --help; if it is given, prints it, and the map has "help".
boost::program_options::variables_map parse_command(const Command& command, const std::vector<std::string>& arguments,
                                                    boost::program_options::options_description options);

inline constexpr std::size_t kMostReplications = 100'000;

// The option's value if it is given. REQUIRES an option of type long long.
std::size_t count_option(const boost::program_options::variables_map& values, const char* name, std::size_t fallback,
                         std::size_t most);

// What --set and --seed ask for. `seed` may be empty.
std::vector<Setting> parse_settings(const std::vector<std::string>& sets, const std::string& seed, InputErrors& errors);

// What --output asks for: nothing if `file` is empty, standard output if it is "-". Returns the exit status.
int write_output(const std::string& file, std::string_view text);

// Where the scenarios are that ship with the program.
std::filesystem::path library_folder();

}  // namespace vcpusim
