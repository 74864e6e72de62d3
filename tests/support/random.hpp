// Of the tests and of `echelon verify`.
#pragma once

#include "verify/random.hpp"

namespace echelon::test {
using namespace verify;
}  // namespace echelon::test
