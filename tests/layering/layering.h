// Who may include whom: sim <- models <- scenarios <- tools.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vcpusim::layering {

// Every include below `root` that breaks a rule, as "FILE:LINE: what is wrong", sorted.
std::vector<std::string> violations(const std::filesystem::path& root);

}  // namespace vcpusim::layering
