#include "models/catalogue.h"
#include "scenarios/version.h"

int main() { return vcpusim::find_lock_kind("ticket") != nullptr && !vcpusim::version().empty() ? 0 : 1; }
