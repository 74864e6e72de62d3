// SPDX-License-Identifier: Apache-2.0
// Sums in memory that ranks share, beyond the tests of every all-reduce (tests/contract/test_allreduce.cpp): many plans
// one after another on few channels, ranks that lag behind, and refusals.
#include "comm/shared_channel.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/executor.hpp"
#include "comm/collective/wire_form.hpp"
#include "comm/engine.hpp"
#include "comm/local/local.hpp"
#include "tests/support/allreduce_check.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// A sequence of plans on one channel; each rank has its own position in it.
struct Rank {
  std::unique_ptr<Transport> transport;
  Executor executor{kLeastWindow};
  std::vector<std::vector<float>> data;  // one per plan
  std::size_t plan = 0;
};

float value(int rank, std::size_t plan, std::size_t i) {
  return static_cast<float>((i * 13 + plan * 7 + static_cast<std::size_t>(rank) * 101) % 509);
}

AllreduceRequest request_of(int rank, int ranks, std::int64_t elems) {
  return {.rank = rank, .ranks = ranks, .elems = elems, .hosts = {}};
}

// Runs a few steps of one rank after another, in a random order; for a while one rank gets every turn. So ranks drift
// as far apart as the memory permits, at every place of a plan.
void check_sequence(int ranks, const std::vector<std::int64_t>& sizes, std::uint64_t seed) {
  CAPTURE(ranks, seed);
  auto world = make_local_world(ranks);
  std::vector<Rank> all(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    Rank& rank = all[static_cast<std::size_t>(r)];
    rank.transport = std::move(world[static_cast<std::size_t>(r)]);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      rank.data.emplace_back(static_cast<std::size_t>(sizes[p]));
      for (std::size_t i = 0; i < rank.data[p].size(); ++i) rank.data[p][i] = value(r, p, i);
    }
  }
  const HashRng draws(seed, "turns");
  const auto k = static_cast<std::uint64_t>(ranks);
  int idle = 0;
  for (std::uint64_t round = 0; idle < 1000; ++round) {
    const std::uint64_t drawn = round % 64 < 16 ? draws.at(round / 64).below(0, k) : draws.at(round).below(1, k);
    Rank& rank = all[drawn];
    ++idle;
    if (rank.plan == sizes.size()) continue;
    if (rank.executor.done())
      rank.executor.start(make_allreduce("shared", request_of(static_cast<int>(drawn), ranks, sizes[rank.plan])),
                          rank.data[rank.plan].data(), DType::f32, 3);
    if (rank.executor.advance(*rank.transport)) idle = 0;
    if (rank.executor.done()) ++rank.plan;
  }
  for (int r = 0; r < ranks; ++r) {
    const Rank& rank = all[static_cast<std::size_t>(r)];
    REQUIRE(rank.plan == sizes.size());
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < sizes.size(); ++p)
      for (std::size_t i = 0; i < rank.data[p].size(); ++i) {
        float sum = 0;
        for (int other = 0; other < ranks; ++other) sum += value(other, p, i);
        wrong += rank.data[p][i] != sum;
      }
    CHECK(wrong == 0);
  }
}

std::vector<std::int64_t> drawn_sizes(std::size_t count, std::int64_t most, const std::string& name) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : test::random_integers(count, 1, most, name)) sizes.push_back(size);
  return sizes;
}

}  // namespace

TEST_CASE("plans on one channel, one after another, whatever rank is behind", "[comm][shared]") {
  for (const int ranks : {2, 3, 4, 7}) {
    const std::string name = "shared " + std::to_string(ranks);
    std::vector<std::int64_t> sizes = drawn_sizes(25, 300, name);
    for (const std::int64_t large : drawn_sizes(12, 120'000, name)) sizes.push_back(large);
    for (const std::int64_t mixed : drawn_sizes(12, 5000, name)) sizes.insert(sizes.begin() + mixed % 20, mixed);
    check_sequence(ranks, sizes, test::test_seed() + static_cast<std::uint64_t>(ranks));
  }
}

TEST_CASE("inside hosts, ranks that own no part do not overtake the ranks that read their slots", "[comm][shared]") {
  constexpr std::int64_t kElems = 60'000;
  RankPlans plans;
  for (int r = 0; r < 4; ++r) {
    AllreduceRequest request = request_of(r, 4, kElems);
    request.hosts = {0, 0, 0, 1}, request.inner = "shared";  // the lone rank makes each host have one owner
    plans.push_back(make_allreduce("hierarchical", request));
  }
  std::vector<std::vector<float>> data(4, std::vector<float>(kElems));
  for (int r = 0; r < 4; ++r)
    for (std::size_t i = 0; i < data[0].size(); ++i) data[static_cast<std::size_t>(r)][i] = value(r, 0, i);
  test::run_on(plans, data, 16);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < data[0].size(); ++i)
    wrong += data[0][i] != value(0, 0, i) + value(1, 0, i) + value(2, 0, i) + value(3, 0, i);
  CHECK(wrong == 0);
  CHECK(test::same_bits(data));
}

TEST_CASE("a wait on shared memory names the rank that is behind", "[comm][shared]") {
  std::vector<float> data(100, 1), other(100, 1);
  auto world = make_local_world(3);
  Engine zero(std::move(world[0])), one(std::move(world[1]));  // rank 2 never comes
  const auto job = [&](int rank, std::vector<float>& values) {
    return Job{.plan = make_allreduce("shared", request_of(rank, 3, 100)),
               .data = values.data(),
               .channel = 9,
               .after = nullptr};
  };
  const Ticket ticket = zero.submit(job(0, data)), of_one = one.submit(job(1, other));
  std::vector<WaitView> waits;
  for (const double until_s = now_s() + 10; waits.empty() && now_s() < until_s; waits = zero.waits())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // Rank 1 may have been named earlier, before it had put its values.
  for (const double until_s = now_s() + 10; now_s() < until_s; waits = zero.waits()) {
    if (!waits.empty() && waits[0].peer == 2) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].peer == 2);
  CHECK(waits[0].channel == 9);
  CHECK(waits[0].step == 1);  // waits for its sum
  CHECK(waits[0].since_s > 0);
}

TEST_CASE("ranks of several hosts share no memory", "[comm][shared]") {
  AllreduceRequest request = request_of(0, 2, 10);
  request.hosts = {0, 1};
  CHECK_THROWS_WITH(make_allreduce("shared", request), Catch::Contains("inner = \"shared\""));
  auto world = make_local_world(2, {0, 1});
  std::vector<float> data(10);
  Executor executor(16);
  executor.start(make_allreduce("shared", request_of(0, 2, 10)), data.data(), DType::f32, 1);
  CHECK_THROWS_WITH(executor.advance(*world[0]), Catch::Contains("ranks 0 and 1 are on different hosts"));
}

TEST_CASE("a sum on shared memory takes priorities and no codes", "[comm][shared]") {
  class Coded final : public WireForm {
   public:
    std::string_view name() const override { return "halves"; }
    std::int64_t elems() const override { return 10; }
    std::size_t most_bytes(std::int64_t n) const override { return static_cast<std::size_t>(n); }
    bool exact_size() const override { return true; }
    bool in_place() const override { return true; }
    void begin(void*) override {}
    void finish(void*) override {}
    std::size_t encode(void*, ElemRange, bool, std::byte*) override { return 0; }
    void decode(const std::byte*, std::size_t, void*, ElemRange) override {}
    void decode_add(const std::byte*, std::size_t, void*, ElemRange) override {}
  };
  std::vector<float> data(10);
  auto world = make_local_world(2);
  Engine engine(std::move(world[0]));
  Job job{.plan = make_allreduce("shared", request_of(0, 2, 10)), .data = data.data(), .priority = 3, .after = nullptr};
  job.form = std::make_shared<Coded>();
  CHECK_THROWS_WITH(engine.submit(job), Catch::Contains("'shared'") && Catch::Contains("coded as 'halves'"));
  job.form = nullptr;
  CHECK_NOTHROW(engine.submit(job));
}

}  // namespace echelon
