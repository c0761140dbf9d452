// The scenarios that ship with the program, and what their results can hold.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vcpusim {

struct LibraryEntry {
  std::filesystem::path file;
  std::string name;
  std::string summary;
};

// All scenarios below `folder`, by file name; files that are none are left out.
std::vector<LibraryEntry> scenarios_below(const std::filesystem::path& folder);

// The dotted paths of all results, with VM, TASK and LOCK in the places of names, found by running a small scenario.
std::vector<std::string> metric_paths();

}  // namespace vcpusim
