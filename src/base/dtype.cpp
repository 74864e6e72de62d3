// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

#include "base/check.hpp"

namespace echelon::inline base {

void not_f32_or_f64(DType dtype) {
  check_failed(__FILE__, __LINE__, "a plain loop computes in f32 or f64", {}, std::string(name_of(dtype)));
}

}  // namespace echelon::inline base
