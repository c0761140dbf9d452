#include "scenarios/version.h"

namespace vcpusim {

std::string_view version() { return VCPUSIM_VERSION; }

}  // namespace vcpusim
