// SPDX-License-Identifier: Apache-2.0
#include "base/version.hpp"

namespace echelon::inline base {

const char* commit() { return ECHELON_COMMIT; }

}  // namespace echelon::inline base
