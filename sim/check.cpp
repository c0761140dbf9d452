#include "sim/check.h"

#include <string_view>

namespace vcpusim {

void invariant_failed(const char* file, int line, const char* condition, const std::string& message) {
  // The path below the project's own folder: where it was built is nobody's business.
  std::string_view path = file;
  for (std::string_view layer : {"sim/", "models/", "scenarios/", "tools/", "tests/"}) {
    if (const auto at = path.rfind(layer); at != std::string_view::npos) {
      path.remove_prefix(at);
      break;
    }
  }
  throw InvariantError(std::string(path) + ":" + std::to_string(line) + ": broken invariant (" + condition +
                       "): " + message);
}

}  // namespace vcpusim
