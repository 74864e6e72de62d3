// SPDX-License-Identifier: Apache-2.0
#include "verify/shared_check.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/group.hpp"
#include "device/device.hpp"
#include "parallel/p2p_link.hpp"
#include "parallel/replica_collective.hpp"
#include "verify/random.hpp"

namespace echelon::verify {
namespace {

constexpr int kRounds = 60;
constexpr std::size_t kMost = 3000;  // values

// Equal on all ranks of the ring.
std::uint64_t common_seed(Engine& engine) {
  std::uint64_t seed = test_seed();
  Group(engine, 0).broadcast(&seed, sizeof seed, 0);
  return seed;
}

std::vector<float> values_of(std::uint64_t seed, int rank, int round, std::size_t n) {
  const HashRng rng(seed, fmt::format("{} {}", rank, round));
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(rng.uniform(i) - 0.5);
  return values;
}

std::size_t size_of_round(std::uint64_t seed, int round) {
  return HashRng(seed, "sizes").below(static_cast<std::uint64_t>(round), kMost) + 1;
}

Tensor tensor_of(std::vector<float>& values) {
  return {.data = values.data(), .shape = Shape{static_cast<std::int64_t>(values.size())}, .dtype = DType::f32};
}

}  // namespace

void check_shared_links(Engine& engine, Device& device) {
  const std::uint64_t seed = common_seed(engine);
  const int rank = engine.rank(), ranks = engine.size(), to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
  const std::size_t bytes = kMost * sizeof(float);
  const auto block = engine.share(shared_p2p_link_bytes(bytes));
  ECHELON_CHECK(block != nullptr, "the ranks share no memory");
  WireCounters wire;
  const auto out =
      make_shared_p2p_link(device, {.group = engine, .peer = to, .sends = true}, block, block->of(rank), bytes, wire);
  const auto in = make_shared_p2p_link(device, {.group = engine, .peer = from}, block, block->of(from), bytes, wire);
  std::uint64_t sent = 0;
  const auto take = [&](int round) {
    std::vector<float> got(size_of_round(seed, round));
    in->receive(tensor_of(got));
    ECHELON_CHECK(got == values_of(seed, from, round, got.size()), "round {}", round);
  };
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> values = values_of(seed, rank, round, size_of_round(seed, round));
    // There are two buffers: the third message is sent once the first was taken.
    if (round >= static_cast<int>(kTransferBuffers)) take(round - static_cast<int>(kTransferBuffers));
    out->send(tensor_of(values));
    sent += values.size() * sizeof(float);
  }
  for (int round = kRounds - static_cast<int>(kTransferBuffers); round < kRounds; ++round) take(round);
  ECHELON_CHECK_EQ(wire.bytes_sent, sent);
  Group(engine, 0).barrier();
}

void check_shared_collectives(Engine& engine) {
  const std::uint64_t seed = common_seed(engine);
  const HashRng kinds(seed, "kinds"), units(seed, "units");
  const int rank = engine.rank(), ranks = engine.size();
  const auto k = static_cast<std::size_t>(ranks);
  const std::size_t bytes = kMost * sizeof(float);
  const auto device = open_device("reference", {});
  const auto block = engine.share(shared_collective_bytes(bytes));
  ECHELON_CHECK(block != nullptr, "the ranks share no memory");
  WireCounters wire;
  const auto collective = make_shared_collective(*device, engine, 1, block, bytes, wire);
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t before = wire.bytes_sent;
    if (kinds.uniform(static_cast<std::uint64_t>(round)) < 0.5) {
      const std::size_t n = size_of_round(seed, round);
      std::vector<float> mine = values_of(seed, rank, round, n), sum(n), expected = values_of(seed, 0, round, n);
      for (int r = 1; r < ranks; ++r) {
        const std::vector<float> theirs = values_of(seed, r, round, n);
        for (std::size_t i = 0; i < n; ++i) expected[i] += theirs[i];
      }
      collective->sum(tensor_of(mine), tensor_of(sum));
      ECHELON_CHECK(std::memcmp(sum.data(), expected.data(), n * sizeof(float)) == 0, "sum of round {}", round);
      std::vector<double> sent = {static_cast<double>(wire.bytes_sent - before)};
      Group(engine, 0).sum(sent);
      ECHELON_CHECK_EQ(sent[0], 2.0 * (static_cast<double>(k) - 1) * static_cast<double>(n * sizeof(float)));
      continue;
    }
    GatherForm form{.outer = 3, .inner = 5, .units = {}};
    for (int r = 0; r < ranks; ++r)
      form.units.push_back(1 +
                           static_cast<std::int64_t>(units.below(static_cast<std::uint64_t>(round * ranks + r), 9)));
    std::vector<std::vector<float>> blocks;
    std::vector<float> expected;
    for (int r = 0; r < ranks; ++r)
      blocks.push_back(
          values_of(seed, r, round, static_cast<std::size_t>(15 * form.units[static_cast<std::size_t>(r)])));
    for (std::size_t outer = 0; outer < 3; ++outer)
      for (const std::vector<float>& of : blocks) {
        const auto n = static_cast<std::ptrdiff_t>(of.size() / 3), at = static_cast<std::ptrdiff_t>(outer) * n;
        expected.insert(expected.end(), of.begin() + at, of.begin() + at + n);
      }
    std::vector<float> whole(expected.size());
    collective->gather(form, tensor_of(blocks[static_cast<std::size_t>(rank)]), tensor_of(whole));
    ECHELON_CHECK(whole == expected, "gather of round {}", round);
    ECHELON_CHECK_EQ(wire.bytes_sent - before, (k - 1) * blocks[static_cast<std::size_t>(rank)].size() * sizeof(float));
  }
  Group(engine, 0).barrier();
}

}  // namespace echelon::verify
