// SPDX-License-Identifier: Apache-2.0
// A checksum of visited state, to compare what was saved with what was loaded.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/checksum.hpp"
#include "checkpoint/checkpoint.hpp"

namespace echelon::test {

class StateSummer final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void tensor(const StateTensor& t) override {
    add(t.name, t.data, static_cast<std::size_t>(t.shape.elems()) * size_of(t.dtype));
  }
  void scalar(std::string_view name, std::int64_t& value, Absent) override { add(name, &value, sizeof value); }
  void scalar(std::string_view name, double& value, Absent) override { add(name, &value, sizeof value); }
  std::uint64_t sum() const { return sum_; }

 private:
  void add(std::string_view name, const void* data, std::size_t bytes) {
    sum_ = checksum64(data, bytes, checksum64(name.data(), name.size(), sum_));
  }
  std::uint64_t sum_ = 0;
};

// checksum64 over the names and bytes of all visited state, in the order of the visit; takes one pass.
inline std::uint64_t state_checksum(const VisitAll& visit) {
  StateSummer summer;
  visit(summer);
  return summer.sum();
}

}  // namespace echelon::test
