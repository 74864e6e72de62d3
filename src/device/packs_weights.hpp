// SPDX-License-Identifier: Apache-2.0
// An op that keeps its weights in a library's packed format, packed once per parameter version.
#pragma once

#include "device/op.hpp"

namespace echelon::inline device {

class PacksWeights {
 public:
  virtual ~PacksWeights() = default;
  // `other` reads the same weights (chunks of one layer): if both pack them in one format, they share one copy.
  virtual void share_weights(Op& other) = 0;
};

}  // namespace echelon::inline device
