// The JSON Schema (draft-07) of scenario files, for editors and for whoever generates scenarios.
//
// Written by a visitor of the same description that the reader follows. It says all that a schema can say about
// one value at a time; relations between values (a lock that exists, a warm-up before the end) are the reader's.
#pragma once

#include <string>

namespace vcpusim {

std::string schema_text();  // ends with a line break

}  // namespace vcpusim
