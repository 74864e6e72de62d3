// SPDX-License-Identifier: Apache-2.0
// The state of asynchronous servers and their workers in checkpoints: optimiser states per replica or gathered from the
// servers, the mean square of gradients, and residuals of a codec.
#include "exchange/asynchronous/strategy.hpp"
#include "exchange/local_scaling.hpp"
#include "exchange/server/gather.hpp"
#include "exchange/staging.hpp"

namespace echelon::inline exchange {

// Gathers the servers' optimiser states and mean squares of gradients.
void AsyncStrategy::gather_state() {
  if (alone() || !attachment_) return;
  const std::size_t elem = size_of(context_.arenas.dtype());
  // Calls read(bucket, to) with the address of each bucket's own part in `arena`.
  const auto put_own = [&](void* arena, const auto& read) {
    for (int b = 0; served_ && b < static_cast<int>(buckets_.size()); ++b)
      read(b, static_cast<std::byte*>(arena) +
                  static_cast<std::size_t>(buckets_[static_cast<std::size_t>(b)].own.begin) * elem);
  };
  for (int s = 0; at_servers() && s < context_.optimiser.states(); ++s) {
    Staging states(context_.arenas.device(), context_.optimiser.state(s), context_.arenas.elems(),
                   context_.arenas.dtype());
    put_own(states.at(0), [&](int b, void* to) { served_->read_state(b, s, to); });
    gather(states.at(0));
    states.store({0, context_.arenas.elems()});
  }
  if (!mean_square_.empty()) {
    put_own(mean_square_.data(), [&](int b, void* to) { served_->read_mean_square(b, to); });
    gather(mean_square_.data());
  }
  context_.arenas.device().synchronize();
}

void AsyncStrategy::gather(void* arena) {
  const int behind = context_.first_channel + 2 * static_cast<int>(buckets_.size());  // after the protocol's channels
  const DType dtype = context_.arenas.dtype();
  for (const Bucket& bucket : buckets_)
    gather_bucket(context_.engine, {.range = bucket.range, .own = bucket.own, .plan = bucket.gather, .channel = behind},
                  static_cast<std::byte*>(arena) + static_cast<std::size_t>(bucket.range.begin) * size_of(dtype), dtype,
                  nullptr);
}

void AsyncStrategy::visit_state(StateVisitor& visitor) {
  if (codec_) codec_->visit_state(visitor);
  if (alone()) return;
  if (at_servers()) {
    double updates = updates_before_ + static_cast<double>(newest_version_);
    StateTensor tensor;
    tensor.name = "strategy/server_updates";
    tensor.data = &updates, tensor.dtype = DType::f64, tensor.shape = Shape{1};
    tensor.absent_is_zero = true;
    visitor.tensor(tensor);
    if (visitor.loading()) updates_before_ = updates;
  } else {
    const ReplicaPosition position{context_.engine.rank(), workers_};
    pass_.visit_local_states(visitor, context_.optimiser, position);
    visit_local_scaling(visitor, context_.optimiser.scaling(), position, context_.part);
  }
  if (mean_square_.empty()) return;
  for (const Parameter& parameter : context_.arenas.parameters().all()) {
    const std::string name = "strategy/mean_square/" + parameter.name;
    std::byte* data =
        mean_square_.data() + static_cast<std::size_t>(parameter.begin) * size_of(context_.arenas.dtype());
    StateTensor tensor = whole_tensor(name, data, context_.arenas.dtype(), parameter);
    tensor.absent_is_zero = true;
    visitor.tensor(tensor);
  }
}

}  // namespace echelon::inline exchange
