// The version of vcpusim, as results carry it.
#pragma once

#include <string_view>

namespace vcpusim {

std::string_view version();  // "0.1.0"

}  // namespace vcpusim
