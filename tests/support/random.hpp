// SPDX-License-Identifier: Apache-2.0
// Forwards to the header that the tests share with `echelon verify`.
#pragma once

#include "verify/random.hpp"

namespace echelon::test {
using namespace verify;
}  // namespace echelon::test
