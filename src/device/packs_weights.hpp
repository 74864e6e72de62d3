// An op that keeps weights in a format of its own, packed once a parameter version.
#pragma once

#include "device/op.hpp"

namespace echelon::inline device {

class PacksWeights {
 public:
  virtual ~PacksWeights() = default;
  // `other` reads the same weights (chunks of one layer): where it packs them alike, both use what it packs.
  virtual void share_weights(Op& other) = 0;
};

}  // namespace echelon::inline device
