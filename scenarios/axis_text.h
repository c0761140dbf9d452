// Axes as they are written on the command line.
#pragma once

#include <optional>
#include <string_view>

#include "scenarios/scenario.h"

namespace vcpusim {

// "PATH=a,b,c", or "PATH=LO:HI:STEP" for numbers or spans of one unit: LO, LO + STEP, ... up to HI, which is among them
// if the steps lead there exactly. Values are JSON if they are JSON, and texts otherwise; commas inside brackets or
// quotes belong to a value. None, and an error that mentions `option` ("--vary"), if it is neither.
std::optional<Axis> parse_axis(std::string_view option, std::string_view text, InputErrors& errors);

}  // namespace vcpusim
