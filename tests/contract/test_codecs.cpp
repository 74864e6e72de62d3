// SPDX-License-Identifier: Apache-2.0
// Tests every registered codec over its plans: identical bits, nothing lost, nothing hidden, bytes by formula.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "tests/support/codec_world.hpp"
#include "tests/support/random.hpp"

using namespace echelon;

namespace {

using Data = std::vector<std::vector<float>>;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// Returns every pair (codec, algorithm) that may be combined.
std::vector<std::pair<std::string, std::string>> ways() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& codec : codec_names()) {
    if (codec_info(codec).route != CodecRoute::any) {
      all.emplace_back(codec, "");
      continue;
    }
    for (const std::string& algorithm : allreduce_names())
      if (algorithm != "mpi" && algorithm != "shared") all.emplace_back(codec, algorithm);
  }
  return all;
}

Data drawn_data(int ranks, std::int64_t elems, const std::string& name, double size = 1) {
  Data data;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<double> values =
        test::random_values(static_cast<std::size_t>(elems), name + " " + std::to_string(r));
    data.emplace_back();
    for (const double value : values) data.back().push_back(static_cast<float>(size * value));
  }
  return data;
}

std::vector<double> sum_of(const Data& data) {
  std::vector<double> sum(data[0].size());
  for (const auto& of_rank : data)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of_rank[i];
  return sum;
}

bool same_bits(const Data& data) {
  for (const auto& of_rank : data)
    if (!of_rank.empty() && std::memcmp(of_rank.data(), data[0].data(), of_rank.size() * sizeof(float)) != 0)
      return false;
  return true;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

// Returns the error of rounding partial sums on the way, which no residual keeps.
double slack(const std::string& codec) { return codec == "bf16" ? 0x1p-6 : codec == "fp16" ? 0x1p-9 : 1e-5; }

}  // namespace

TEST_CASE("every codec: identical bits on all ranks; encoded values and residuals add up to the sum",
          "[contract][codec]") {
  for (const auto& [codec, algorithm] : ways())
    for (int k = 1; k <= 8; ++k)
      for (const std::int64_t n : std::initializer_list<std::int64_t>{0, 1, 2, 7, 8, 9, k - 1, k + 1, 1003}) {
        CAPTURE(codec, algorithm, k, n);
        test::CodecWorld world(codec, algorithm, k, n, {.density = 0.05});
        std::vector<double> wanted(static_cast<std::size_t>(n));
        std::vector<double> encoded(wanted.size());
        for (std::uint64_t step = 0; step < 3; ++step) {
          Data data = drawn_data(k, n, "step " + std::to_string(step));
          const std::vector<double> sum = sum_of(data);
          world.exchange(data, step);
          CHECK(same_bits(data));
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            wanted[i] += sum[i];
            encoded[i] += data[0][i];
          }
        }
        std::vector<double> error = world.residual();
        for (std::size_t i = 0; i < error.size(); ++i) error[i] += encoded[i] - wanted[i];
        CHECK(largest(error) <= slack(codec) * std::max(1.0, largest(wanted)) * k);
      }
}

TEST_CASE("sent values and residuals add up to the sum of updates, to 1e-6", "[contract][codec]") {
  for (const std::string& codec : codec_names()) {
    if (codec_info(codec).route == CodecRoute::any) continue;  // partial sums are rounded on the way
    CAPTURE(codec);
    constexpr int k = 4;
    constexpr std::int64_t n = 3001;
    test::CodecWorld world(codec, "", k, n);
    std::vector<double> wanted(n), encoded(n);
    for (std::uint64_t step = 0; step < 20; ++step) {
      Data data = drawn_data(k, n, "update " + std::to_string(step), 0.01);
      const std::vector<double> sum = sum_of(data);
      world.exchange(data, step);
      for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += sum[i], encoded[i] += data[0][i];
    }
    const std::vector<double> residual = world.residual();
    double worst = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      worst = std::max(worst, std::fabs(encoded[i] + residual[i] - wanted[i]));
    CHECK(worst <= 1e-6 * std::max(1.0, largest(wanted)));
  }
}

TEST_CASE("error feedback: the mean of the encoded values converges to the mean of the exact ones",
          "[contract][codec]") {
  for (const auto& [codec, algorithm] : ways()) {
    CAPTURE(codec, algorithm);
    constexpr int k = 3;
    constexpr std::int64_t n = 700;
    test::CodecWorld world(codec, algorithm, k, n, {.density = 0.1});
    const Data meant = drawn_data(k, n, "meant");
    const std::vector<double> sum = sum_of(meant);
    std::vector<double> encoded(n);
    double after_10 = 0;
    constexpr int kSteps = 400;
    for (int step = 1; step <= kSteps; ++step) {
      Data data = meant;
      world.exchange(data, static_cast<std::uint64_t>(step));
      double error = 0;
      for (std::size_t i = 0; i < encoded.size(); ++i) {
        encoded[i] += data[0][i];
        const double off = encoded[i] / step - sum[i];
        error += off * off / static_cast<double>(n);
      }
      if (step == 10) after_10 = std::sqrt(error);
      if (step == kSteps) CHECK(std::sqrt(error) <= std::max(after_10 / 5, slack(codec) * largest(sum)));
    }
  }
}

TEST_CASE("inf and NaN of any rank are in everybody's result and leave no residual", "[contract][codec]") {
  for (const auto& [codec, algorithm] : ways())
    for (const float bad : {kNaN, -kNaN, kInf, -kInf})
      for (const std::int64_t n : {1, 9, 3000}) {
        CAPTURE(codec, algorithm, bad, n);
        constexpr int k = 3;
        test::CodecWorld world(codec, algorithm, k, n);
        Data data = drawn_data(k, n, "bad");
        data[1][static_cast<std::size_t>(2 * n / 3)] = bad;
        world.exchange(data, 1);
        CHECK(same_bits(data));
        std::size_t not_finite = 0;
        for (const float value : data[0]) not_finite += !std::isfinite(value);
        CHECK(not_finite > 0);
        for (const double residual : world.residual()) CHECK(std::isfinite(residual));
        for (std::uint64_t step = 2; step < 4; ++step) {  // the next steps are finite again
          data = drawn_data(k, n, "good");
          world.exchange(data, step);
        }
        for (const float value : data[0]) CHECK(std::isfinite(value));
      }
}

TEST_CASE("zeros, denormals and huge values are sent or stay in the residual", "[contract][codec]") {
  for (const auto& [codec, algorithm] : ways())
    for (const double size : {0.0, 1e-44, 1e-39, 1e30}) {
      CAPTURE(codec, algorithm, size);
      if (codec == "fp16" && size > 1e5) continue;  // overflows to inf, as the codec's file says
      constexpr int k = 3;
      constexpr std::int64_t n = 999;
      test::CodecWorld world(codec, algorithm, k, n);
      Data data = drawn_data(k, n, "small", size);
      const std::vector<double> sum = sum_of(data);
      world.exchange(data, 1);
      CHECK(same_bits(data));
      std::vector<double> error = world.residual();
      for (std::size_t i = 0; i < error.size(); ++i) error[i] += data[0][i] - sum[i];
      CHECK(largest(error) <= std::max(1e-44 * k, slack(codec) * k * largest(sum)));
    }
}

TEST_CASE("bytes on the wire are those of the formula where it has one", "[contract][codec]") {
  for (const auto& [codec, algorithm] : ways())
    for (int k = 2; k <= 6; ++k) {
      CAPTURE(codec, algorithm, k);
      constexpr std::int64_t n = 5003;
      test::CodecWorld world(codec, algorithm, k, n);
      Data data = drawn_data(k, n, "bytes");
      world.exchange(data, 1);
      double sent = 0;
      for (const WireCounters& rank : world.counters()) sent += static_cast<double>(rank.bytes_sent);
      const AllreduceRequest request{.rank = 0, .ranks = k, .elems = n, .segment_elems = 50, .hosts = {}};
      const Codec& of_all = world.bucket(0).codec();
      const double formula = world.bucket(0).codecs().bytes(algorithm, request);
      if (of_all.exact_size()) CHECK(sent == formula);
      CHECK(of_all.exact_size() == std::isfinite(formula));
      if (codec_info(codec).lossy) CHECK(world.bucket(0).bytes_after() < world.bucket(0).bytes_before());
    }
}

TEST_CASE("a threshold that adapts keeps to its density, also where gradients shrink", "[contract][codec]") {
  constexpr int k = 2, kSteps = 400;
  constexpr std::int64_t n = 20000;
  test::CodecWorld world("threshold", "", k, n, {.density = 0.01});
  double late = 0;
  for (int step = 0; step < kSteps; ++step) {
    Data data = drawn_data(k, n, "noise " + std::to_string(step), step < 100 ? 0.01 : 0.004);
    world.exchange(data, static_cast<std::uint64_t>(step));
    if (step >= kSteps / 2) late += world.bucket(0).codec().density() / (kSteps / 2);
  }
  CHECK(late > 0.005);
  CHECK(late < 0.02);
}

TEST_CASE("an unknown codec is refused with the nearest name", "[contract][codec]") {
  CHECK_THROWS_WITH(codec_info("fp61"), Catch::Contains("did you mean 'fp16'"));
}

TEST_CASE("threshold: the ratios of results/codecs.md, on as many values as LeNet has", "[contract][codec]") {
  constexpr int k = 2;
  constexpr std::int64_t n = 421642;
  const HashRng rng(test::test_seed(), "gradients");
  std::vector<float> normal(std::size_t{1} << 20);  // each step and rank takes another part of them
  for (std::size_t i = 0; i < normal.size(); ++i) normal[i] = static_cast<float>(hash_normal(rng, i));
  struct Row {
    double density, ratio;  // the density aimed at, and the least ratio
  };
  for (const Row& row : {Row{0.01, 300}, Row{0.0025, 1000}, Row{0.001, 2000}}) {
    CAPTURE(row.density);
    test::CodecWorld world("threshold", "", k, n, {.ranks = k, .density = row.density});
    double before = 0, after = 0, density = 0;
    constexpr std::uint64_t kSteps = 240, kFirst = 200;  // tau has adapted by then
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      Data data(k, std::vector<float>(n));
      for (std::size_t r = 0; r < k; ++r) {
        const auto first = rng.at(1).below(k * step + r, normal.size() - n);
        std::copy_n(normal.begin() + static_cast<std::ptrdiff_t>(first), n, data[r].begin());
      }
      world.exchange(data, step);
      if (step < kFirst) continue;
      before += world.bucket(0).bytes_before();
      after += world.bucket(0).bytes_after();
      density += world.bucket(0).codec().density() / (kSteps - kFirst);
    }
    INFO("density " << density << ", ratio " << before / after);
    CHECK(density == Approx(row.density).epsilon(0.15));
    CHECK(before / after >= row.ratio);
  }
}
