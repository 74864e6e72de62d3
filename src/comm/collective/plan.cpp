// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/plan.hpp"

#include <algorithm>

namespace echelon::inline comm {

const SharedUse& Plan::shared() const {
  static const SharedUse nothing;
  return nothing;
}

ListedPlan::ListedPlan(std::string name, std::vector<Step> steps, int slots, std::int64_t slot_elems, SharedUse shared)
    : name_(std::move(name)),
      steps_(std::move(steps)),
      slots_(slots),
      slot_elems_(slot_elems),
      shared_(std::move(shared)),
      uses_library_(
          std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.kind == StepKind::library; })) {
  steps_.shrink_to_fit();  // a plan is kept as long as its bucket
}

ElemRange even_part(std::int64_t elems, int parts, int i) {
  const std::int64_t least = elems / parts, longer = elems % parts;
  const std::int64_t begin = i * least + std::min<std::int64_t>(i, longer);
  return {begin, begin + least + (i < longer ? 1 : 0)};
}

}  // namespace echelon::inline comm
