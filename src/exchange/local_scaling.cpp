// SPDX-License-Identifier: Apache-2.0
#include "exchange/local_scaling.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace echelon::inline exchange {
namespace {

// Writes scalars to a row of numbers, or reads them from it.
class ScalarRow final : public StateVisitor {
 public:
  ScalarRow() = default;
  explicit ScalarRow(std::vector<double> loaded) : loading_(true), values_(std::move(loaded)) {}

  bool loading() const override { return loading_; }
  void tensor(const StateTensor&) override {}
  void scalar(std::string_view, std::int64_t& value, Absent) override {
    auto real = static_cast<double>(value);
    pass(real);
    value = static_cast<std::int64_t>(real);
  }
  void scalar(std::string_view, double& value, Absent) override { pass(value); }
  std::vector<double>& values() { return values_; }

 private:
  void pass(double& value) {
    if (loading_)
      value = values_.at(next_++);
    else
      values_.push_back(value);
  }

  bool loading_ = false;
  std::size_t next_ = 0;
  std::vector<double> values_;
};

}  // namespace

void visit_local_scaling(StateVisitor& visitor, LossScale& scale, ReplicaPosition position, const std::string& part) {
  if (!scale.active() || position.ranks == 1) return;
  ScalarRow row;
  scale.visit_state(row);
  visit_by_replica(visitor, "strategy/loss_scale" + part, row.values(), position, OtherK::keep);
  if (!visitor.loading() || position.rank >= position.ranks) return;
  ScalarRow loaded(std::move(row.values()));
  scale.visit_state(loaded);
}

}  // namespace echelon::inline exchange
