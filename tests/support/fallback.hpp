// SPDX-License-Identifier: Apache-2.0
// Tells whether an op of the onednn device runs a body that nobody optimised.
#pragma once

#include <string>

#include "base/processor.hpp"

namespace echelon::test {

// Whether oneDNN has an optimised body for every op of the device. Debian's library for ARM leaves many convolutions
// and the gradient of gelu to plain code.
inline constexpr bool kLibraryOptimisesAll = kX86;

// Whether an op with this Op::implementation() runs unoptimised code although kLibraryOptimisesAll.
inline bool falls_back(const std::string& implementation) {
  const auto names = [&](const char* body) { return implementation.find(body) != std::string::npos; };
  return kLibraryOptimisesAll && (names("ref") || names("simple"));
}

}  // namespace echelon::test
