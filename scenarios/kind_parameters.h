// The parameters of a kind as lines of text, for people who ask what there is.
#pragma once

#include <string>
#include <vector>

namespace vcpusim {

struct ParameterLine {
  std::string key;       // dotted within groups
  std::string form;      // "duration", "integer from 1 to 64", ...
  std::string fallback;  // the default as a scenario would write it; "" if the key is required or has none
  std::string help;
};

// What can be described by name.
struct KindDescription {
  std::string family;  // "lock", "operation", "machine"
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterLine> parameters;
};

// All kinds of the catalogue, by family, then name.
std::vector<KindDescription> all_kinds();

}  // namespace vcpusim
