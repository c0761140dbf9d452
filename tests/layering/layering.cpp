#include "tests/layering/layering.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <regex>
#include <string_view>

namespace vcpusim::layering {
namespace {

namespace fs = std::filesystem;

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_use;   // folders, beside its own
  std::vector<std::string_view> must_not;  // beginnings of the names of headers it may not see
  bool plain_headers;                      // its headers are for everybody: only standard ones inside
};

// Neither simulates nor computes: the world outside of a model.
const std::vector<std::string_view> kOutside = {
    "nlohmann/",
    "valijson/",
    "boost/json",
    "boost/property_tree",
    "boost/program_options",
    "fmt/",
    "iostream",
    "fstream",
    "filesystem",
    "cstdio",
    "stdio.h",
    "ctime",
    "time.h",
    "thread",
    "unistd.h",
};

const std::vector<Layer> kLayers = {
    {"sim", {}, kOutside, true},
    {"models", {"sim"}, kOutside, true},
    {"scenarios", {"sim", "models"}, {"boost/program_options", "iostream"}, false},
    {"tools", {"sim", "models", "scenarios"}, {}, false},
};

bool contains(const std::vector<std::string_view>& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

// What is wrong with `#include "name"` (or <name>, if not quoted) in a file of `layer`.
std::optional<std::string> wrong(const Layer& layer, const std::string& name, bool quoted, bool in_header) {
  const std::string_view first = std::string_view(name).substr(0, name.find('/'));
  const bool ours = name.find('/') != std::string::npos &&
                    (first == "tests" || std::ranges::find(kLayers, first, &Layer::folder) != kLayers.end());
  if (ours && first != layer.folder && !contains(layer.may_use, first)) {
    return std::string(layer.folder) + " must not use " + name;
  }
  if (quoted && !ours && !name.ends_with(".def")) {
    return "\"" + name + "\" is not a path from the root of the project";
  }
  for (const std::string_view beginning : layer.must_not) {
    if (name.starts_with(beginning)) return std::string(layer.folder) + " must not see <" + name + ">";
  }
  if (layer.plain_headers && in_header && !ours && name.find('/') != std::string::npos) {
    return "a header of " + std::string(layer.folder) + " must not need <" + name + ">";
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> violations(const fs::path& root) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<std::string> found;
  for (const Layer& layer : kLayers) {
    if (!fs::exists(root / layer.folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / layer.folder)) {
      const fs::path& path = entry.path();
      const bool in_header = path.extension() == ".h";
      if (!in_header && path.extension() != ".cpp") continue;
      std::ifstream file(path);
      std::string line;
      for (int number = 1; std::getline(file, line); ++number) {
        std::smatch match;
        if (!std::regex_match(line, match, kInclude)) continue;
        if (const auto what = wrong(layer, match[2], match[1] == "\"", in_header)) {
          found.push_back(fs::relative(path, root).generic_string() + ":" + std::to_string(number) + ": " + *what);
        }
      }
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace vcpusim::layering
