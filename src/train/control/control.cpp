#include "train/control/control.hpp"

namespace echelon {
namespace {

constexpr int kSampledRanks = 64;  // blocks of times that rank 0 takes in a step, on average

}  // namespace

Control::Control(Engine& world, int channel)
    : world_(world),
      tree_(world.rank(), world.size(), channel, (world.size() + kSampledRanks - 1) / kSampledRanks),
      attachment_(world.attach(tree_, *this)) {}

Control::~Control() = default;

void Control::begin(const ControlWords& words) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    promise_ = world_.promise();
  }
  tree_.set_words(words);
  attachment_->post(ControlTree::kWords);
}

const ControlSum& Control::wait() {
  promise_.ticket().wait();
  return tree_.sum();
}

void Control::told(Token, double now_s) {
  const std::lock_guard lock(mutex_);
  promise_.fulfil(0, now_s, {});
}

void Control::failed(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
  promise_.fail(error, world_.clock().now_s());
}

}  // namespace echelon
