// SPDX-License-Identifier: Apache-2.0
// Probabilities of logits (N, K, P) by places, of which the lanes of a vector are neighbours.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/onednn/planes.hpp"
#include "device/onednn/vector_math.hpp"

namespace echelon::inline device::onednn {

// Places of a sample that are computed together: their logits of all classes stay in the first cache.
constexpr std::int64_t kPlaces = 256;

constexpr std::int64_t place_blocks(std::int64_t P) { return (P + kPlaces - 1) / kPlaces; }

// Runs body(n, first place, number of places, index of the block) for all blocks of places.
template <class Body>
void for_blocks(std::int64_t N, std::int64_t K, std::int64_t P, int threads, const Body& body) {
  const std::int64_t blocks = place_blocks(P);
#pragma omp parallel for num_threads(threads) if (threads > 1 && N * K * P >= kParallelElems)
  for (std::int64_t i = 0; i < N * blocks; ++i) {
    const std::int64_t first = i % blocks * kPlaces;
    body(i / blocks, first, std::min(kPlaces, P - first), i);
  }
}

// Each place of a block has its largest logit, the sum of exp(logit - largest), and the sum of logits.
struct PlaceSums {
  float top[kPlaces], total[kPlaces], logit_sum[kPlaces];
};

// Writes the probabilities of `count` places of K classes, which lie P apart.
inline void softmax_of_places(std::int64_t K, std::int64_t P, const float* logits, float* probs, std::int64_t count,
                              PlaceSums& sums) {
  over_lanes(count, [&]<int kLanes>(std::int64_t i) {
    using L = Lanes<kLanes>;
    auto most = L::load(logits + i), sum = most;
    for (std::int64_t k = 1; k < K; ++k) {
      const auto x = L::load(logits + k * P + i);
      most = x > most ? x : most;
      sum += x;
    }
    auto parts = most - most;
    for (std::int64_t k = 0; k < K; ++k) {
      const auto e = VectorMath<L>::exp(L::load(logits + k * P + i) - most);
      L::store(probs + k * P + i, e);
      parts += e;
    }
    const auto factor = 1.0f / parts;
    for (std::int64_t k = 0; k < K; ++k) L::store(probs + k * P + i, L::load(probs + k * P + i) * factor);
    L::store(sums.top + i, most), L::store(sums.total + i, parts), L::store(sums.logit_sum + i, sum);
  });
}

// Sums over labels, which the forward ops of losses of classes add to their tensor 4.
struct LabelSums {
  double loss = 0, correct = 0, weight = 0;
  void add(const LabelSums& other) { loss += other.loss, correct += other.correct, weight += other.weight; }
};

inline LabelSums total_of(const LabelSums* parts, std::int64_t count) {
  LabelSums all;
  for (std::int64_t i = 0; i < count; ++i) all.add(parts[i]);
  return all;
}

inline void put_sums(const LabelSums& all, const OpArgs& args) {
  auto* sums = static_cast<double*>(args.tensors[4]);
  if ((args.accumulate & 16U) == 0) sums[0] = sums[1] = sums[2] = 0.0;
  sums[0] += all.loss, sums[1] += all.correct, sums[2] += all.weight;
}

// The first address in scratch at which a T may lie; callers ask for alignof(T) bytes more than they use.
template <class T>
T* aligned(void* scratch) {
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  return reinterpret_cast<T*>((address + alignof(T) - 1) / alignof(T) * alignof(T));
}

// Whether the label's logit is the first of the largest ones.
inline bool is_chosen(std::int64_t P, const float* logits, std::int32_t label, float largest) {
  if (logits[label * P] != largest) return false;
  for (std::int32_t k = 0; k < label; ++k)
    if (logits[k * P] == largest) return false;
  return true;
}

}  // namespace echelon::inline device::onednn
