// Whole files, in and out.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace vcpusim {

struct FileText {
  std::string text;
  std::string problem;     // why the file could not be read; then text is empty
  bool too_large = false;  // more than was asked for; then text is empty
};

FileText read_file(const std::filesystem::path& file, std::size_t most);

// The file appears whole or not at all: written beside, flushed to the disk, then renamed. Devices and pipes are
// written to directly. Returns what went wrong, or "".
std::string write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace vcpusim
