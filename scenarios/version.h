// Which vcpusim this is, as results carry it.
#pragma once

#include <string_view>

namespace vcpusim {

std::string_view version();  // "0.1.0"

// Of the sources of the engine and the models that this was built from: equal if equal scenarios have equal results
// for sure. 16 hexadecimal digits. Kinds that a program adds to the library are not in it.
std::string_view model_digest();  // defined in a file that the build writes

}  // namespace vcpusim
