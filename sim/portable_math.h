// Elementary functions whose bits are the same everywhere.
//
// The C library's log and exp differ in the last bit between libraries, versions and processors. These use only
// + - * / in double, which IEEE 754 rounds correctly, in a fixed order; every file of the project is compiled
// with -ffp-contract=off, so that no compiler fuses a multiplication and an addition on a machine that could.
//
// Error: at most 2 ulp (0.86 seen in 40 million comparisons with long double). Cost: about 15 ns.
#pragma once

namespace vcpusim::portable {

// Natural logarithm. REQUIRES x positive, normal and finite.
double log(double x);

// e to the x. Infinity above 709.78..., zero below -745.13...; a result below 2^-1022 may be 1 unit more off.
// REQUIRES x not NaN.
double exp(double x);

}  // namespace vcpusim::portable
