// SHA-256 (FIPS 180-4), to name a resolved scenario by its content. Not for anything secret.
#pragma once

#include <string>
#include <string_view>

namespace vcpusim {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case hexadecimal digits

}  // namespace vcpusim
