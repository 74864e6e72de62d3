// SPDX-License-Identifier: Apache-2.0
// The text of a choice that a run made by measurement, as a tensor of its checkpoints.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "base/state.hpp"

namespace echelon::inline run {

template <std::size_t kBytes>
class ChoiceText {
 public:
  static bool fits(const std::string& text) { return text.size() < kBytes; }
  void set(const std::string& text) {
    ECHELON_CHECK_LT(text.size(), kBytes);
    chars_.fill(0);
    std::copy(text.begin(), text.end(), chars_.begin());
  }
  std::string text() const { return chars_.data(); }

  void visit_state(StateVisitor& visitor, const std::string& name) {
    StateTensor tensor;
    tensor.name = name;
    tensor.data = chars_.data();
    tensor.dtype = DType::u8;
    tensor.shape = Shape{static_cast<std::int64_t>(kBytes)};
    visitor.tensor(tensor);
  }

 private:
  std::array<char, kBytes> chars_{};  // the text, and zeros
};

}  // namespace echelon::inline run
