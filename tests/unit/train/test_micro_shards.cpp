// SPDX-License-Identifier: Apache-2.0
// The tree over micro-shards: its shape, its memory, and equality for every split between replicas.
#include "train/micro_shards.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon {
namespace {

using Values = std::vector<float>;

constexpr std::int64_t kElems = 37;

// Returns numbers of different sizes, so that any other order of adding gives other bits.
Values leaf(std::int64_t index) {
  const HashRng draws = HashRng(5, "leaf").at(static_cast<std::uint64_t>(index));
  Values values;
  for (std::uint64_t i = 0; i < kElems; ++i)
    values.push_back(static_cast<float>((draws.uniform(2 * i) - 0.5) *
                                        std::ldexp(1.0, static_cast<int>(draws.below(2 * i + 1, 12)))));
  return values;
}

Values sum(const Values& a, const Values& b) {
  Values both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(a[i] + b[i]);
  return both;
}

Values tree(std::int64_t first, std::int64_t leaves) {
  return leaves == 1 ? leaf(first) : sum(tree(first, leaves / 2), tree(first + leaves / 2, leaves / 2));
}

struct Rig {
  std::unique_ptr<Device> device = open_device("reference", {});
  Arenas arenas;
  Rig() : arenas(*device, parameters(), DType::f32) {}
  static ParameterSet parameters() {
    ParameterSet set;
    set.add("a", Shape{30}, {});
    set.add("b", Shape{kElems - 30}, {});
    return set;
  }
  void write(const Values& values) {
    device->to_device(arenas.gradients_at(0), values.data(), values.size() * sizeof(float));
  }
  Values read() const {
    Values values(kElems);
    device->to_host(values.data(), arenas.gradients_at(0), values.size() * sizeof(float));
    return values;
  }
};

TEST_CASE("micro-shards are added in a balanced binary tree, in log2 arenas beside the one", "[train]") {
  for (const std::int64_t leaves : {1, 2, 4, 8, 16}) {
    Rig rig;
    const std::size_t before = rig.device->allocated_bytes();
    MicroShards shards(rig.arenas, leaves);
    std::size_t levels = 0;
    while ((std::int64_t{1} << levels) < leaves) ++levels;
    const std::size_t added = rig.device->allocated_bytes() - before;
    CHECK(added >= levels * kElems * sizeof(float));
    CHECK(added < (levels + 1) * (kElems * sizeof(float) + 64));
    for (int step = 0; step < 2; ++step) {
      shards.begin_step();
      double all = 0;
      for (std::int64_t i = 0; i < leaves; ++i) {
        rig.write(leaf(100 * step + i));
        if (i + 1 < leaves) shards.keep_gradients();
        shards.add_losses({.loss = static_cast<double>(i), .correct = 1, .weight = 2});
        all += static_cast<double>(i);
      }
      shards.complete_gradients({30, kElems});  // announced as backward passes do
      shards.complete_gradients({0, 30});
      CHECK(rig.read() == tree(100 * step, leaves));
      CHECK(shards.losses().loss == all);
      CHECK(shards.losses().weight == 2.0 * static_cast<double>(leaves));
    }
  }
}

TEST_CASE("sums in another order than the tree's have other bits", "[train]") {
  Values in_a_row = leaf(0);
  for (int i = 1; i < 8; ++i) in_a_row = sum(in_a_row, leaf(i));
  CHECK(in_a_row != tree(0, 8));
}

}  // namespace
}  // namespace echelon
