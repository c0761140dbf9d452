// Dotted paths into a JSON tree: "vms.web.guest.locks.kernel.kind", with array items by their "name" or by index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/input_errors.h"
#include "scenarios/json_document.h"

namespace vcpusim {

// Null if there is nothing at `path`.
const Json* find_path(const Json& root, std::string_view path);

// Puts `value` at `path`. Objects on the way that are missing are made, with the value's place, so that a reader of
// the tree reports what it does not know there; items of arrays are not. A bare name on the way ("ticket") becomes
// an object with that bare_name. False, and an error at the value's place, if the path leads through something
// that has no parts.
bool set_path(Json& root, std::string_view path, Json value, InputErrors& errors);

}  // namespace vcpusim
