// SPDX-License-Identifier: Apache-2.0
// Messages of decentralised exchange and the values left in the residual: vectors worked out by hand, random entries,
// values that are not finite, damaged messages.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/hash_rng.hpp"
#include "exchange/strom/coder.hpp"
#include "exchange/strom/message.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using namespace test;
using Message = std::vector<std::byte>;

template <class T>
struct Replica {
  explicit Replica(StromFormat format, std::size_t n)
      : weights(n), residual(n), changed(n), coder(coder_of(format, n)) {}
  static StromCoder coder_of(StromFormat format, std::size_t n) {
    format.dtype = dtype_of<T>;
    const ArenaRange all{0, static_cast<std::int64_t>(n)};
    return {format, all, {all}};
  }
  StromCoder::Update update(const std::vector<T>& values, double scale = 1) {
    for (std::size_t i = 0; i < values.size(); ++i) changed[i] = weights[i] + values[i];
    return {changed.data(), weights.data(), residual.data(), scale};
  }
  Message encode(const std::vector<T>& values, double scale = 1) {
    Message message(strom_room(coder.bucket().elems(), dtype_of<T>, true));
    message.resize(coder.encode(update(values, scale), message.data()));
    return message;
  }
  void apply(const Message& message) {
    add_message(message, coder.format().entropy, weights.data(), dtype_of<T>, coder.bucket().elems());
  }

  std::vector<T> weights, residual, changed;
  StromCoder coder;
};

std::vector<std::uint32_t> random_entries(std::uint64_t seed, std::int64_t n, double density) {
  const HashRng random(seed, "entries");
  std::vector<std::uint32_t> entries;
  for (std::int64_t i = 0; i < n; ++i)
    if (const double draw = random.uniform(static_cast<std::uint64_t>(i)); draw < density)
      entries.push_back(static_cast<std::uint32_t>(i) << 1 | (draw < density / 2 ? 1u : 0u));
  return entries;
}

}  // namespace

TEMPLATE_TEST_CASE("what is sent and what stays: a vector worked out by hand", "[exchange][strom]", float, double) {
  using V = std::vector<TestType>;
  for (const bool entropy : {false, true}) {
    Replica<TestType> replica({.entropy = entropy, .tau = 0.5}, 6);
    // 0.5 is sent, 1.75 is sent as 0.5 once, and -0.4375 stays.
    Message message = replica.encode({0.25, 0.5, 1.75, -0.4375, -0.5, 0});
    CHECK(replica.residual == V{0.25, 0, 1.25, -0.4375, 0, 0});
    CHECK(replica.weights == V(6));  // a replica's own entries change its weights only by a message
    if (!entropy) CHECK(message.size() == 4 + 4 * 3);
    CHECK(replica.coder.density() == 0.5);
    replica.apply(message);
    CHECK(replica.weights == V{0, 0.5, 0.5, 0, -0.5, 0});
    // Half of the next update is sent, as for shares of replicas.
    message = replica.encode({0.5, 0, 0, -0.25, 0, 0.75}, 0.5);
    replica.apply(message);
    CHECK(replica.weights == V{0.5, 0.5, 1, -0.5, -0.5, 0});
    CHECK(replica.residual == V{0, 0, 0.75, -0.0625, 0, 0.375});
    CHECK(replica.coder.residual_squares() == 0.75 * 0.75 + 0.0625 * 0.0625 + 0.375 * 0.375);
    // First nothing is sent, and then everything.
    replica.coder.hold(replica.update({1, 0, 0, 0, 0, 0}));
    CHECK(replica.residual[0] == 1);
    CHECK(replica.coder.density() == 0);
    Message dense(strom_room(6, dtype_of<TestType>, true));
    dense.resize(replica.coder.encode_dense(replica.update({0, 0, 0, 0, 0, 1}), dense.data()));
    CHECK(dense.size() == 6 * sizeof(TestType) + 4);
    CHECK(replica.residual == V(6));
    replica.apply(dense);
    CHECK(replica.weights == V{1.5, 0.5, 1.75, -0.5625, -0.5, 1.375});
  }
}

TEST_CASE("messages of random entries hold these, in at most the room of their bucket", "[exchange][strom]") {
  const HashRng random(test_seed(), "messages");
  for (std::uint64_t round = 0; round < 200; ++round) {
    const std::int64_t n = 1 + static_cast<std::int64_t>(random.below(3 * round, round % 5 == 0 ? 20'000 : 50));
    const double density = std::pow(random.uniform(3 * round + 1), 3.0);
    const std::vector<std::uint32_t> entries = random_entries(test_seed() + round, n, round % 7 == 0 ? 1.0 : density);
    for (const bool entropy : {false, true}) {
      CAPTURE(round, n, entries.size(), entropy);
      Message message(strom_room(n, DType::f32, false));
      const std::size_t bytes = write_entries(0.25f, entries, entropy, n, message.data());
      REQUIRE(bytes <= message.size());
      REQUIRE((entropy || bytes == 4 + 4 * entries.size()));
      if (entries.empty()) REQUIRE(bytes == 4);
      message.resize(bytes);
      std::vector<float> weights(static_cast<std::size_t>(n), 1), wanted = weights;
      for (const std::uint32_t entry : entries) wanted[entry >> 1] += (entry & 1) != 0 ? -0.25f : 0.25f;
      add_message(message, entropy, weights.data(), DType::f32, n);
      REQUIRE(weights == wanted);
      const double each = std::log2(static_cast<double>(n) / static_cast<double>(entries.size())) + 3.1;
      if (entropy && entries.size() > 1000)
        REQUIRE(static_cast<double>(bytes) < 9 + each * static_cast<double>(entries.size()) / 8);
    }
  }
}

TEST_CASE("a message of another bucket, cut short or of places that do not exist is a failed check",
          "[exchange][strom]") {
  std::vector<float> weights(100);
  const auto add = [&](const Message& message, bool entropy) {
    add_message(message, entropy, weights.data(), DType::f32, 100);
  };
  for (const bool entropy : {false, true}) {
    Message message(strom_room(200, DType::f32, false));
    message.resize(write_entries(1, random_entries(1, 200, 0.5), entropy, 200, message.data()));
    CHECK_THROWS(add(message, entropy));
    CHECK_THROWS(add(Message(3), entropy));
  }
  CHECK_THROWS(add(Message(7, std::byte{1}), false));
  Message dense(strom_room(99, DType::f32, true));
  dense.resize(write_dense(weights.data(), DType::f32, 99, dense.data()));
  CHECK_THROWS(add(dense, true));
}

TEMPLATE_TEST_CASE("an update that is not finite makes its entries NaN everywhere, and no residual",
                   "[exchange][strom]", float, double) {
  constexpr TestType kNan = std::numeric_limits<TestType>::quiet_NaN(),
                     kInf = std::numeric_limits<TestType>::infinity();
  for (const TestType bad : {kNan, kInf, -kInf})
    for (const double tau : {0.0, 0.5})
      for (const bool entropy : {false, true}) {
        Replica<TestType> replica({.entropy = entropy, .tau = tau, .density = 0.2}, 5);
        replica.apply(replica.encode({0.125, 0.125, bad, 0.125, 0.125}));
        CHECK(std::isnan(replica.weights[2]));
        CHECK(replica.weights[1] == 0);
        CHECK(replica.residual[2] == 0);
        CHECK(replica.residual[1] == 0.125);
      }
}

TEST_CASE("the messages of zeros are empty", "[exchange][strom]") {
  Replica<float> replica({.density = 0.1}, 10);
  CHECK(replica.encode(std::vector<float>(10)).size() == 4);
  CHECK(replica.coder.tau() == 0);
  replica.encode({0, 0, 0, 2, 1, 0, 0, 0, 0, 0});  // sets the first tau
  CHECK(replica.coder.sent_tau() == 2);
}

TEMPLATE_TEST_CASE("tau adapts to the density", "[exchange][strom]", float, double) {
  constexpr std::size_t n = 4000;
  for (const double density : {0.1, 0.01}) {
    Replica<TestType> replica({.density = density}, n);
    const HashRng random(test_seed(), "updates");
    double sent = 0;
    constexpr int kSteps = 300;
    for (int step = 0; step < kSteps; ++step) {
      std::vector<TestType> update(n);
      for (std::size_t i = 0; i < n; ++i)
        update[i] = static_cast<TestType>(hash_normal(random, static_cast<std::uint64_t>(step) * n + i));
      replica.encode(update);
      if (step >= kSteps / 2) sent += replica.coder.density() / (kSteps / 2);
    }
    CAPTURE(density, sent);
    CHECK(sent == Approx(density).epsilon(0.3));
  }
}

TEMPLATE_TEST_CASE("sent and residual are the sum of the updates: to 1e-6, exactly for powers of two of dyadic updates",
                   "[exchange][strom]", float, double) {
  const HashRng random(test_seed(), "conservation");
  std::uint64_t draws = 0;
  for (int round = 0; round < 40; ++round) {
    const std::size_t n = 1 + random.below(draws++, 5000);
    const bool dyadic = round % 2 == 0;
    const double tau =
        dyadic ? std::exp2(-static_cast<double>(random.below(draws++, 8))) : 0.3 * random.uniform(draws++);
    Replica<TestType> replica({.entropy = round % 4 < 2, .tau = tau}, n);
    std::vector<double> sum(n), size(n, 1);
    for (int step = 0; step < 20; ++step) {
      std::vector<TestType> update(n);
      for (std::size_t i = 0; i < n; ++i) {
        update[i] = static_cast<TestType>(dyadic ? static_cast<double>(random.below(draws++, 513)) / 256 - 1
                                                 : hash_normal(random, draws++));
      }
      const Message message = replica.encode(update);
      for (std::size_t i = 0; i < n; ++i) {
        const double change = static_cast<double>(replica.changed[i]) - static_cast<double>(replica.weights[i]);
        sum[i] += change, size[i] += std::abs(change);
      }
      replica.apply(message);
    }
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i)
      worst = std::max(
          worst, std::abs(static_cast<double>(replica.weights[i]) + static_cast<double>(replica.residual[i]) - sum[i]) /
                     size[i]);
    CHECK(worst <= (dyadic ? 0 : 1e-6));
  }
}

TEST_CASE("rooms of strom's messages lie in a row, each at the start of a double", "[strom]") {
  for (const std::int64_t elems : {1, 2, 3, 7, 64, 1001})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool dense : {false, true}) CHECK(strom_room(elems, dtype, dense) % alignof(double) == 0);
}

}  // namespace echelon
