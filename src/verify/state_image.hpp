// SPDX-License-Identifier: Apache-2.0
// Keeps the state that an object shows to checkpoints in memory, to be loaded into another object of the same kind.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/state.hpp"

namespace echelon::verify {

class StateImage final : public StateVisitor {
 public:
  void load() { loading_ = true; }
  bool loading() const override { return loading_; }
  void tensor(const StateTensor& t) override {
    both(t.name, t.data, static_cast<std::size_t>(t.shape.elems()) * size_of(t.dtype));
  }
  void scalar(std::string_view name, std::int64_t& value, Absent) override { scalar_of(name, &value, sizeof value); }
  void scalar(std::string_view name, double& value, Absent) override { scalar_of(name, &value, sizeof value); }
  // Visits all scalars. A checkpoint file has those of rank 0.
  template <class Act>
  void each_scalar(const Act& act) {
    for (const std::string& name : scalars_) act(std::span(all_.at(name)));
  }

 private:
  void scalar_of(std::string_view name, void* data, std::size_t bytes) {
    scalars_.insert(std::string(name));
    both(name, data, bytes);
  }
  void both(std::string_view name, void* data, std::size_t bytes) {
    std::vector<std::byte>& kept = all_[std::string(name)];
    if (!loading_) kept.resize(bytes);
    ECHELON_CHECK_EQ(kept.size(), bytes, "'{}' is of another size", name);
    if (bytes > 0) std::memcpy(loading_ ? data : kept.data(), loading_ ? kept.data() : data, bytes);
  }

  bool loading_ = false;
  std::map<std::string, std::vector<std::byte>> all_;
  std::set<std::string> scalars_;
};

}  // namespace echelon::verify
