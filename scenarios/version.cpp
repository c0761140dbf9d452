#include "scenarios/version.h"

namespace vcpusim {

std::string_view version() { return VCPUSIM_VERSION; }

std::string_view model_digest() {
  static constexpr std::string_view kDigest =
#include "model_digest.inc"
      ;
  return kDigest;
}

}  // namespace vcpusim
