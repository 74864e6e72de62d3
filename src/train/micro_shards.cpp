// SPDX-License-Identifier: Apache-2.0
#include "train/micro_shards.hpp"

#include <bit>

#include "base/check.hpp"

namespace echelon::inline train {
namespace {

std::size_t trailing_ones(std::int64_t n) {
  return static_cast<std::size_t>(std::countr_one(static_cast<std::uint64_t>(n)));
}

LossSums operator+(const LossSums& a, const LossSums& b) {
  return {.loss = a.loss + b.loss, .correct = a.correct + b.correct, .weight = a.weight + b.weight};
}

}  // namespace

MicroShards::MicroShards(Arenas& arenas, std::int64_t leaves) : arenas_(arenas), leaves_(leaves) {
  ECHELON_CHECK(leaves > 0 && std::has_single_bit(static_cast<std::uint64_t>(leaves)), "{} micro-shards", leaves);
  arenas.track_rows(false);  // what the arena holds after a step is of all micro-shards, the marks of the last one
  const std::size_t levels = trailing_ones(leaves - 1);
  const std::size_t bytes = static_cast<std::size_t>(arenas.elems()) * size_of(arenas.dtype());
  for (std::size_t level = 0; level < levels; ++level)
    levels_.push_back(arenas.device().allocate(bytes, "gradients of micro-shards"));
  losses_.resize(levels + 1);
}

void MicroShards::begin_step() { kept_ = counted_ = 0; }

void MicroShards::add(std::size_t level, ArenaRange range) {
  const std::size_t first = static_cast<std::size_t>(range.begin) * size_of(arenas_.dtype());
  arenas_.device().vector_ops().add(arenas_.dtype(), arenas_.gradients_at(range.begin), levels_[level].bytes_at(first),
                                    static_cast<std::size_t>(range.elems()));
}

void MicroShards::keep_gradients() {
  ECHELON_CHECK_LT(kept_, leaves_ - 1, "the last micro-shard is completed, not kept");
  const std::size_t free = trailing_ones(kept_++);
  for (std::size_t level = 0; level < free; ++level) add(level, {0, arenas_.elems()});
  arenas_.device().vector_ops().copy(arenas_.dtype(), levels_[free].data(), arenas_.gradients_at(0),
                                     static_cast<std::size_t>(arenas_.elems()));
}

void MicroShards::complete_gradients(ArenaRange range) {
  ECHELON_CHECK_EQ(kept_, leaves_ - 1, "the last micro-shard's gradients before those of others");
  for (std::size_t level = 0; level < levels_.size(); ++level) add(level, range);
}

void MicroShards::add_losses(const LossSums& losses) {
  ECHELON_CHECK_LT(counted_, leaves_, "a micro-shard too many");
  LossSums sum = losses;
  const std::size_t free = trailing_ones(counted_++);
  for (std::size_t level = 0; level < free; ++level) sum = losses_[level] + sum;
  losses_[free] = sum;
}

}  // namespace echelon::inline train
