// Results files as tables.
#pragma once

#include <filesystem>

namespace vcpusim {

// One row a run: the coordinates of its point, seed, replication, how it ended, and all metrics of the file. RFC 4180.
// Throws FileError. Cost: two passes over the file.
void write_csv(const std::filesystem::path& results, const std::filesystem::path& csv);

}  // namespace vcpusim
