// SPDX-License-Identifier: Apache-2.0
#include "exchange/kit/error_feedback.hpp"

#include <limits>

#include "base/hash_rng.hpp"
#include "exchange/buckets.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {

ErrorFeedback::ErrorFeedback(const ExchangeConfig& config, const ParameterSet& parameters,
                             std::vector<ArenaRange> buckets, std::uint64_t seed, Device* encoder)
    : on_(is_coded(config)),
      lossy_(is_lossy(config)),
      feeds_back_(config.error_feedback),
      warmup_steps_(config.codec_warmup_steps),
      parameters_(parameters),
      buckets_(std::move(buckets)),
      seed_(seed),
      step_(buckets_.size()),
      loaded_(buckets_.size()),
      tally_(buckets_.size()) {
  if (lossy_) residual_ = encoder ? Residual(*encoder, parameters.elems()) : Residual(parameters.elems());
}

std::uint64_t ErrorFeedback::key(std::size_t b, std::int64_t step, int rank, const char* way) const {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  return HashRng(seed_, way).at(word(step)).at(word(rank)).at(bucket_key(parameters_, buckets_[b])).key();
}

double ErrorFeedback::formula_bytes(double bytes) const {
  return warmup_steps_ > 0 ? std::numeric_limits<double>::quiet_NaN() : bytes;
}

void ErrorFeedback::visit_state(StateVisitor& visitor, ReplicaPosition position) {
  residual_.visit(visitor, "residual", parameters_, position);
  if (!visitor.loading()) return;
  if (drops()) residual_.clear({0, parameters_.elems()});
  loaded_.assign(buckets_.size(), 1);
}

}  // namespace echelon::inline exchange
