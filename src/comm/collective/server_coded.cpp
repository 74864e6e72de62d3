// A parameter server's traffic in wire form, in the rounds of server.cpp: the parts go through slots, one message each.
#include <algorithm>
#include <utility>
#include <vector>

#include "comm/collective/server.hpp"

namespace echelon {
namespace {

class Steps {
 public:
  explicit Steps(const Parts& parts) {
    for (const ElemRange& part : parts) slot_elems_ = std::max(slot_elems_, part.elems());
  }
  int new_slot() { return slots_++; }
  std::int64_t add(const Step& step) {
    steps_.push_back(step);
    return static_cast<std::int64_t>(steps_.size()) - 1;
  }
  std::shared_ptr<const Plan> finish(const char* name) {
    return std::make_shared<ListedPlan>(name, std::move(steps_), slots_, slot_elems_);
  }

 private:
  std::vector<Step> steps_;
  int slots_ = 0;
  std::int64_t slot_elems_ = 0;
};

}  // namespace

std::shared_ptr<const Plan> make_coded_push(const AllreduceRequest& request) {
  const Parts parts = server_parts(request);
  const int k = request.ranks, me = request.rank, workers = server_workers(request);
  const ElemRange mine = parts[static_cast<std::size_t>(me)];
  Steps plan(parts);
  bool holds = me < workers;
  std::int64_t added = -1;
  for (int d = 1; d < k; ++d) {
    const int to = (me + d) % k, from = (me - d + k) % k;
    const ElemRange out = me < workers ? parts[static_cast<std::size_t>(to)] : ElemRange{};
    std::int64_t came = -1;
    int slot = -1;
    if (from < workers && !mine.empty())
      came = plan.add({.kind = StepKind::recv, .peer = from, .range = mine, .slot = slot = plan.new_slot()});
    if (!out.empty()) {
      const int written = plan.new_slot();
      const std::int64_t copied = plan.add({.kind = StepKind::copy, .range = out, .slot = written, .to_slot = true});
      plan.add({.kind = StepKind::send, .peer = to, .range = out, .slot = written, .after = {copied, -1}});
    }
    if (came < 0) continue;
    added = plan.add(
        {.kind = holds ? StepKind::reduce : StepKind::copy, .range = mine, .slot = slot, .after = {came, added}});
    holds = true;
  }
  return plan.finish("coded push");
}

std::shared_ptr<const Plan> make_coded_pull(const AllreduceRequest& request) {
  const Parts parts = server_parts(request);
  const int k = request.ranks, me = request.rank, workers = server_workers(request);
  const ElemRange mine = parts[static_cast<std::size_t>(me)];
  Steps plan(parts);
  const int own = mine.empty() || k == 1 ? -1 : plan.new_slot();
  const std::int64_t written =
      own < 0 ? -1 : plan.add({.kind = StepKind::copy, .range = mine, .slot = own, .to_slot = true, .sum = true});
  for (int d = 1; d < k; ++d) {
    const int to = (me + d) % k, from = (me - d + k) % k;
    const ElemRange in = me < workers ? parts[static_cast<std::size_t>(from)] : ElemRange{};
    if (!in.empty()) {
      const int slot = plan.new_slot();
      const std::int64_t came = plan.add({.kind = StepKind::recv, .peer = from, .range = in, .slot = slot});
      plan.add({.kind = StepKind::copy, .range = in, .slot = slot, .after = {came, -1}});
    }
    if (to < workers && own >= 0)
      plan.add({.kind = StepKind::send, .peer = to, .range = mine, .slot = own, .after = {written, -1}});
  }
  return plan.finish("coded pull");
}

}  // namespace echelon
