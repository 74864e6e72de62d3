// SPDX-License-Identifier: Apache-2.0
// Forwards to the header that the tests share with `echelon verify`.
#pragma once

#include "verify/device_variants.hpp"

namespace echelon::test {
using namespace verify;
}  // namespace echelon::test
