// Of the tests and of `echelon verify`.
#pragma once

#include "verify/worker.hpp"

namespace echelon::test {
using namespace verify;
}  // namespace echelon::test
