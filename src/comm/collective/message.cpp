#include "comm/collective/message.hpp"

namespace echelon::inline comm {
namespace {

std::shared_ptr<const Plan> one_step(const char* name, StepKind kind, int peer, std::int64_t elems) {
  std::vector<Step> steps;
  if (elems > 0) steps.push_back({.kind = kind, .peer = peer, .range = {0, elems}});
  return std::make_shared<ListedPlan>(name, std::move(steps));
}

}  // namespace

std::shared_ptr<const Plan> make_send_to(int peer, std::int64_t elems) {
  return one_step("message", StepKind::send, peer, elems);
}

std::shared_ptr<const Plan> make_receive_from(int peer, std::int64_t elems) {
  return one_step("message", StepKind::recv, peer, elems);
}

}  // namespace echelon::inline comm
