// SPDX-License-Identifier: Apache-2.0
// Optimiser rules on the device.
#include "cuda/kernels/update.hpp"
#include "base/check.hpp"
#include "base/dtype.hpp"
#include "cuda/check.hpp"
#include "cuda/make.hpp"
#include "device/device.hpp"
#include "device/update_rules/choose.hpp"

namespace echelon::cuda {
namespace {

template <class Rule, class T>
class CudaUpdate final : public Update {
 public:
  explicit CudaUpdate(const Context& context) : context_(context) {}

  void apply(void* w, const void* g, std::span<void* const> states, std::size_t n,
             const RuleScalars& scalars) override {
    ECHELON_CHECK_EQ(states.size(), static_cast<std::size_t>(Rule::kStates),
                     "rule {} was given the wrong number of states", Rule::kName);
    context_.use();
    update_range<Rule>(static_cast<T*>(w), static_cast<const T*>(g), states, n, scalars, context_.stream());
    check_launch(Rule::kName);
  }

  void apply_rows(void* w, const void* g, std::span<void* const> states, const RowMarks& marks,
                  const RuleScalars& scalars) override {
    ECHELON_CHECK_EQ(states.size(), static_cast<std::size_t>(Rule::kStates),
                     "rule {} was given the wrong number of states", Rule::kName);
    context_.use();
    update_rows<Rule>(static_cast<T*>(w), static_cast<const T*>(g), states, marks, scalars, context_.stream());
    check_launch(Rule::kName);
  }

 private:
  const Context& context_;
};

}  // namespace

std::unique_ptr<Update> make_update(const Context& context, std::string_view rule, DType dtype) {
  return with_rule(rule, [&]<class Rule>() {
    return with_float(
        dtype, [&]<class T>(T) -> std::unique_ptr<Update> { return std::make_unique<CudaUpdate<Rule, T>>(context); });
  });
}

}  // namespace echelon::cuda
