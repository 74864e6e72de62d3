// Of the tests and of `echelon verify`.
#pragma once

#include "verify/halves.hpp"

namespace echelon::test {
using namespace verify;
}  // namespace echelon::test
