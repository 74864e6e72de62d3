// SPDX-License-Identifier: Apache-2.0
// exchange.code_sums: the owners of parts sum onebit's messages and code the sums once more. Bits against plain loops,
// bytes by formula, small nets that learn, and checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "comm/codec/coded_bucket.hpp"
#include "comm/codec/coded_rows.hpp"
#include "exchange/allreduce/gradient_codec.hpp"
#include "tests/support/codec_oracle.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/plan_world.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;
using Floats = std::vector<float>;

ExchangeConfig coded_sums() {
  ExchangeConfig config;
  config.codec = "onebit";
  config.code_sums = true;
  return config;
}

// Long and short rows, and values without rows: parts of ranks begin in all of them.
ParameterSet mixed_rows() {
  ParameterSet set;
  set.add("dense", Shape{5, 3000}, {});
  set.add("bias", Shape{77}, {});
  set.add("conv", Shape{40, 16, 3, 3}, {});
  return set;
}

Floats drawn(std::int64_t n, const std::string& name) {
  const std::vector<double> values = random_values(static_cast<std::size_t>(n), name);
  return {values.begin(), values.end()};
}

Floats slice(const Floats& values, ElemRange range) {
  return {values.begin() + range.begin, values.begin() + range.end};
}

void put(const Floats& from, Floats& to, ElemRange range) {
  std::copy(from.begin(), from.end(), to.begin() + range.begin);
}

// A bucket that is all of `set`, on k ranks: its plans, and the plain loops that it is compared with.
class World {
 public:
  World(const ParameterSet& set, int k) : set_(set), n_(set.elems()) {
    for (int r = 0; r < k; ++r) {
      const AllreduceRequest request{.rank = r, .ranks = k, .elems = n_};
      const ElemRange own = even_part(n_, k, r);
      parts_.push_back(own);
      residuals_.emplace_back(static_cast<std::size_t>(n_));
      of_sums_.emplace_back(static_cast<std::size_t>(own.elems()));
      plans_.push_back(make_direct_allreduce(request));
    }
    right_residuals_ = residuals_, right_of_sums_ = of_sums_;
    for (std::size_t r = 0; r < plans_.size(); ++r)
      forms_.push_back(std::make_unique<CodedBucket>(codecs(), n_, residuals_[r], of_sums_[r], parts_[r].begin));
  }

  PartCodecs codecs() const { return codecs_of(coded_sums(), set_, DType::f32, {0, n_}, request()); }
  AllreduceRequest request() const { return {.rank = 0, .ranks = static_cast<int>(plans_.size()), .elems = n_}; }

  double exchange(std::vector<Floats>& data) {
    std::vector<void*> buffers;
    std::vector<WireForm*> forms;
    for (std::size_t r = 0; r < data.size(); ++r) {
      forms_[r]->begin_step(1);
      buffers.push_back(data[r].data());
      forms.push_back(forms_[r].get());
    }
    double sent = 0;
    for (const WireCounters& rank : run_plans(plans_, buffers, DType::f32, 6, forms))
      sent += static_cast<double>(rank.bytes_sent);
    return sent;
  }

  // Each rank encodes every part; the part's owner adds what they encode in the order of ranks, and encodes the sum.
  Floats right_sum(const std::vector<Floats>& data) {
    Floats result(static_cast<std::size_t>(n_));
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const ElemRange part = parts_[p];
      const CodecOptions options{.rows = coded_rows(set_, {part.begin, part.end})};
      Floats sum;
      for (std::size_t r = 0; r < data.size(); ++r) {
        const OracleEncoding one =
            oracle_of("onebit", slice(data[r], part), slice(right_residuals_[r], part), 0, 0, options);
        put(one.residual, right_residuals_[r], part);
        if (r == 0) sum.assign(one.encoded.size(), 0);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = r == 0 ? one.encoded[i] : sum[i] + one.encoded[i];
      }
      const OracleEncoding of_sum = oracle_of("onebit", sum, right_of_sums_[p], 0, 0, options);
      right_of_sums_[p] = of_sum.residual;
      put(of_sum.encoded, result, part);
    }
    return result;
  }

  bool residuals_right() const { return residuals_ == right_residuals_ && of_sums_ == right_of_sums_; }

 private:
  const ParameterSet& set_;
  std::int64_t n_;
  std::vector<ElemRange> parts_;
  std::vector<Floats> residuals_, of_sums_, right_residuals_, right_of_sums_;
  RankPlans plans_;
  std::vector<std::unique_ptr<CodedBucket>> forms_;
};

ReplicaRun small_run(std::size_t ranks) {
  return {.graph = small_batch_norm_net(),
          .shares = std::vector<std::int64_t>(ranks, 8),
          .codec = "onebit",
          .code_sums = true,
          .dtype = DType::f32,
          .activations = DType::f32,
          .steps = 12,
          .bucket_kb = 2,
          .one_batch = true};
}

TEST_CASE("coded sums have the bits of plain loops, and what they leave out stays with their owners", "[codec]") {
  const ParameterSet set = mixed_rows();
  for (int k = 2; k <= 7; ++k) {
    CAPTURE(k);
    World world(set, k);
    for (int step = 0; step < 3; ++step) {
      std::vector<Floats> data;
      for (int r = 0; r < k; ++r) data.push_back(drawn(set.elems(), fmt::format("step {} rank {}", step, r)));
      const Floats right = world.right_sum(data);
      const double sent = world.exchange(data);
      for (const Floats& of_rank : data) CHECK((of_rank == right));
      CHECK(world.residuals_right());
      CHECK(sent == world.codecs().bytes("", world.request()));
    }
  }
}

TEST_CASE("coded sums take 2(k-1) messages of the whole, and a few bytes for rows that two parts share", "[codec]") {
  const ParameterSet set = mixed_rows();
  const std::size_t whole = onebit_bytes(set, {0, set.elems()});
  for (const int k : {2, 3, 8, 50}) {
    CAPTURE(k);
    const AllreduceRequest request{.rank = 0, .ranks = k, .elems = set.elems()};
    const double bytes = codecs_of(coded_sums(), set, DType::f32, {0, set.elems()}, request).bytes("", request);
    const double least = 2.0 * (k - 1) * static_cast<double>(whole);
    CHECK(bytes >= least);
    CHECK(bytes <= least + 2.0 * (k - 1) * (k - 1) * (8 + 4));  // a row cut in two: a pair of means, a word of bits
  }
}

TEST_CASE("a small net learns with coded sums, on replicas that stay equal, on any device", "[codec]") {
  for (const std::size_t ranks : {2, 3, 5}) {
    CAPTURE(ranks);
    ReplicaRun run = small_run(ranks);
    run.steps = 1;
    const double before = train_replicas(run).loss;
    run.steps = 40;
    const ReplicaResult coded = train_replicas(run);
    check_one_model(coded);
    CHECK(coded.sent_bytes == 40 * coded.formula_bytes);
    run.device = "discrete";
    CHECK((train_replicas(run).weights == coded.weights));
    run.device = "reference", run.code_sums = false;
    const ReplicaResult uncoded = train_replicas(run);
    CHECK((uncoded.weights != coded.weights));
    CHECK(coded.loss < before - 0.5 * (before - uncoded.loss));
  }
}

TEST_CASE("statistics beside coded sums are exact, and a warm-up sends uncoded gradients", "[codec]") {
  ReplicaRun run = small_run(3);
  run.codec = "none", run.code_sums = false, run.steps = 1;
  const std::vector<double> plain = train_replicas(run).weights;
  run.codec = "onebit", run.code_sums = true;
  for (const char* device : {"reference", "discrete"}) {
    run.device = device;
    const std::vector<double> coded = train_replicas(run).weights;
    for (const Parameter& p : run.graph.parameters().all())
      for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i)
        if (p.kind == ParameterKind::statistic) CHECK(coded[i] == Approx(plain[i]).epsilon(1e-6));
  }
  run.device = "reference", run.codec_warmup = 1;
  CHECK((train_replicas(run).weights == plain));
}

TEST_CASE("a run with coded sums goes on from a checkpoint with the same bits", "[codec]") {
  for (const auto& [device, feedback] :
       {std::pair("reference", true), std::pair("discrete", true), std::pair("reference", false)}) {
    CAPTURE(device, feedback);
    ReplicaRun run = small_run(3);
    run.device = device, run.error_feedback = feedback;
    const ReplicaResult whole = train_replicas(run);
    run.resume_at = 5;
    CHECK((train_replicas(run).weights == whole.weights));
  }
}

}  // namespace
}  // namespace echelon
