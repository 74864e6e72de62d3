// SPDX-License-Identifier: Apache-2.0
// Coded pushes and answers of asynchronous servers, in one process and in a drawn order of arrivals, compared with a
// plain loop of k workers over vectors: the bits must be equal. With error feedback no pushed value is lost: decoded
// pushes and residuals add up to the updates.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/hash_rng.hpp"
#include "comm/codec/codec.hpp"
#include "comm/codec/coded_rows.hpp"
#include "exchange/asynchronous/buffers.hpp"
#include "exchange/buckets.hpp"
#include "tests/support/async_setting.hpp"
#include "tests/support/far_device.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using namespace test;
using Values = std::vector<float>;

constexpr std::uint64_t kSeed = 11;

AsyncServing serving_of(const AsyncSetting& setting, bool coded) {
  AsyncServing serving{.workers = setting.workers, .adds_up = setting.soft > 1, .keeps_copies = coded};
  if (setting.compensates) serving.compensation = {.lambda = 0.2};
  if (setting.gradients) serving.optimiser.emplace();
  return serving;
}

// All ranks with production code; the test carries their messages. `far`: servers are out of the host's reach.
class Ranks {
 public:
  Ranks(const AsyncSetting& setting, const Values& weights, bool far) : setting_(setting) {
    for (int rank = 0; rank < setting.ranks; ++rank) {
      std::vector<ArenaRange> own;
      for (std::size_t b = 0; b < setting.buckets.size(); ++b) {
        const ElemRange part = setting.parts[b][at(rank)];
        own.push_back({setting.buckets[b].begin + part.begin, setting.buckets[b].begin + part.end});
      }
      Rank& made = ranks_.emplace_back();
      made.codec = std::make_unique<AsyncCodec>(setting.exchange, setting.parameters,
                                                AsyncCodec::Layout{.rank = rank,
                                                                   .ranks = setting.ranks,
                                                                   .workers = setting.workers,
                                                                   .buckets = setting.buckets,
                                                                   .parts = setting.parts,
                                                                   .seed = kSeed});
      made.served = std::make_unique<AsyncServed>(far ? make_far_device() : open_device("reference", {}),
                                                  setting.parameters, DType::f32, own, serving_of(setting, true));
      made.memory = std::make_unique<AsyncBuffers>(AsyncBuffers::Layout{.rank = rank,
                                                                        .workers = setting.workers,
                                                                        .buckets = setting.buckets,
                                                                        .parts = setting.parts,
                                                                        .dtype = DType::f32},
                                                   setting.parameters, made.served.get(), made.codec.get());
      made.memory->begin(weights.data());
    }
  }

  // Delivers worker w's push of bucket b to every server, and the answers; or its request at a meeting.
  void exchange(int w, int b, const AsyncBuffers::Update& update, std::int64_t clock, const AsyncUpdate& what,
                bool meets) {
    Rank& worker = ranks_[at(w)];
    if (!meets) worker.memory->set_update(at(b), update);
    for (int s = 0; s < setting_.ranks; ++s) {
      if (setting_.parts[at(b)][at(s)].empty()) continue;
      AsyncMemory& server = *ranks_[at(s)].memory;
      AsyncHeader header{.clock = clock};
      header.kind = static_cast<std::uint32_t>(meets ? AsyncKind::meet : AsyncKind::update);
      if (!meets) {
        const AsyncMemory::Message push = worker.memory->push(b, s);
        header.factor = push.factor, header.flags = push.flags;
        std::byte* came = push.data;
        if (s != w) {
          const AsyncMemory::Room room = server.push_room(b, w);
          REQUIRE(push.bytes <= room.bytes);
          std::memcpy(room.data, push.data, push.bytes);
          came = room.data;
        }
        server.apply(b, w, what, header, {came + sizeof header, push.bytes - sizeof header});
      }
      const AsyncMemory::Message answer = server.answer(b, w, header);
      AsyncHeader answered{.flags = answer.flags};
      worker.memory->take(b, s, answered, {answer.data + sizeof header, answer.bytes - sizeof header});
    }
  }

  // Returns the weights of a server's part of bucket b.
  Values weights(int server, int b) const {
    Values values(at(setting_.parts[at(b)][at(server)].elems()));
    ranks_[at(server)].served->read_weights(b, values.data());
    return values;
  }
  float pulled(int w, std::size_t b, std::int64_t elem) const {
    return static_cast<const float*>(ranks_[at(w)].memory->pulled(b))[elem - setting_.buckets[b].begin];
  }

 private:
  struct Rank {
    std::unique_ptr<AsyncCodec> codec;
    std::unique_ptr<AsyncServed> served;
    std::unique_ptr<AsyncBuffers> memory;
  };
  const AsyncSetting& setting_;
  std::vector<Rank> ranks_;
};

// Does the same with vectors of each piece, one after another. The production server adds updates to the weights; its
// own oracle is test_async_served.cpp.
class PlainLoop {
 public:
  PlainLoop(const AsyncSetting& setting, const Values& weights)
      : setting_(setting), lossy_(codec_info(setting.exchange.codec).lossy) {
    for (std::size_t b = 0; b < setting.buckets.size(); ++b)
      for (int s = 0; s < setting.ranks; ++s) {
        const ElemRange part = setting.parts[b][at(s)];
        if (part.empty()) continue;
        Piece& piece = pieces_[{b, s}];
        piece.range = {setting.buckets[b].begin + part.begin, setting.buckets[b].begin + part.end};
        AsyncServing serving = serving_of(setting, false);
        piece.server = std::make_unique<AsyncServed>(open_device("reference", {}), setting.parameters, DType::f32,
                                                     std::vector{piece.range}, serving);
        piece.server->begin(weights.data());
        for (int w = 0; w < setting.workers; ++w) {
          Worker& worker = piece.workers.emplace_back();
          worker.has.assign(weights.begin() + piece.range.begin, weights.begin() + piece.range.end);
          worker.residual.resize(worker.has.size());
          const CodecOptions options{.density = setting.exchange.density,
                                     .tau = setting.exchange.tau,
                                     .index_coding = setting.exchange.index_coding,
                                     .rows = coded_rows(setting.parameters, piece.range)};
          worker.push = make_codec(setting.exchange.codec, options);
          CodecOptions of_answers = options;
          of_answers.tau = 0;  // tau adapts
          worker.answer = make_codec(setting.exchange.codec, of_answers);
        }
      }
  }

  void push(int w, std::size_t b, const AsyncBuffers::Update& update, const AsyncUpdate& what) {
    for (auto& [key, piece] : pieces_) {
      if (key.first != b) continue;
      Worker& worker = piece.workers[at(w)];
      Values values;
      for (std::int64_t i = piece.range.begin; i < piece.range.end; ++i) {
        const std::size_t in_bucket = at(i - setting_.buckets[b].begin), in_piece = at(i - piece.range.begin);
        const bool gradient = update.gradients && !statistic(i);
        values.push_back(gradient ? static_cast<const float*>(update.gradients)[in_bucket]
                                  : static_cast<float>(update.share) *
                                        (static_cast<const float*>(update.weights)[in_bucket] - worker.has[in_piece]));
      }
      const bool coded = update.step >= setting_.exchange.codec_warmup_steps && key.second != w;
      if (coded) {
        Values dropped(values.size());
        Values& residual = lossy_ && !(update.gradients && update.rate == 0) ? worker.residual : dropped;
        if (!setting_.exchange.error_feedback) std::fill(worker.residual.begin(), worker.residual.end(), 0.0f);
        if (&residual == &dropped) dropped = worker.residual;
        code(*worker.push, values, lossy_ ? &residual : nullptr, piece.range, b, "codec", update.step, w, 0);
      }
      for (std::size_t i = 0; i < values.size(); ++i) decoded_[key_of(w, piece, i)] += static_cast<double>(values[i]);
      // The server compensates for the weights that the worker really has.
      piece.server->code_answer(0, w, [&](const void*, void* copy) {
        if (copy) std::memcpy(copy, worker.has.data(), worker.has.size() * sizeof(float));
      });
      piece.server->apply(0, w, what, update.rate, values.data());
      answer(w, piece, b, update.step, coded);
    }
  }

  void meet(int w, std::size_t b) {
    for (auto& [key, piece] : pieces_)
      if (key.first == b) answer(w, piece, b, 0, false);
  }

  float weight(std::size_t b, int server, std::int64_t elem) const {
    const Piece& piece = pieces_.at({b, server});
    return weights_of(piece)[at(elem - piece.range.begin)];
  }
  float has(int w, std::size_t b, int server, std::int64_t elem) const {
    const Piece& piece = pieces_.at({b, server});
    return piece.workers[at(w)].has[at(elem - piece.range.begin)];
  }

 private:
  struct Worker {
    Values has, residual;
    std::unique_ptr<Codec> push, answer;
  };
  struct Piece {
    ArenaRange range;
    std::unique_ptr<AsyncServed> server;
    std::vector<Worker> workers;
  };

  static Values weights_of(const Piece& piece) {
    Values values(at(piece.range.elems()));
    piece.server->read_weights(0, values.data());
    return values;
  }
  bool statistic(std::int64_t i) const { return i >= setting_.parameters[1].begin && i < setting_.parameters[1].end(); }
  static std::pair<int, std::int64_t> key_of(int w, const Piece& piece, std::size_t i) {
    return {w, piece.range.begin + static_cast<std::int64_t>(i)};
  }

  // Replaces values by what their message decodes to; running statistics of a lossy message stay as they are.
  void code(Codec& codec, Values& values, Values* residual, ArenaRange range, std::size_t b, const char* way,
            std::int64_t step, int worker, std::uint64_t sum) const {
    const Values exact = values;
    for (std::size_t i = 0; i < values.size() && lossy_; ++i)
      if (statistic(range.begin + static_cast<std::int64_t>(i))) values[i] = 0;
    const std::uint64_t key = HashRng(kSeed, way)
                                  .at(static_cast<std::uint64_t>(step))
                                  .at(static_cast<std::uint64_t>(worker))
                                  .at(bucket_key(setting_.parameters, setting_.buckets[b]))
                                  .key();
    std::vector<std::byte> wire(codec.most_bytes(range.elems()));
    codec.encode({.values = values.data(),
                  .elems = range.elems(),
                  .residual = residual ? residual->data() : nullptr,
                  .key = hash_combine(key, sum),
                  .first = range.begin - setting_.buckets[b].begin},
                 wire.data());
    for (std::size_t i = 0; i < values.size() && lossy_; ++i)
      if (statistic(range.begin + static_cast<std::int64_t>(i))) {
        values[i] = exact[i];
        if (residual) (*residual)[i] = 0;
      }
  }

  void answer(int w, Piece& piece, std::size_t b, std::int64_t step, bool coded) {
    Worker& worker = piece.workers[at(w)];
    const Values weights = weights_of(piece);
    if (!coded || !lossy_) {
      worker.has = weights;
      return;
    }
    Values change(worker.has.size());
    for (std::size_t i = 0; i < change.size(); ++i) change[i] = weights[i] - worker.has[i];
    code(*worker.answer, change, nullptr, piece.range, b, "codec of answers", step, w, 1);
    for (std::size_t i = 0; i < change.size(); ++i) {
      const bool exact = statistic(piece.range.begin + static_cast<std::int64_t>(i));
      worker.has[i] = exact ? weights[i] : worker.has[i] + change[i];
    }
  }

 public:
  // Returns the largest distance between the sum of a worker's updates and their decoded values plus the residual, over
  // the largest sum. `sums`: by worker and element.
  double worst_loss(const std::map<std::pair<int, std::int64_t>, double>& sums) const {
    double worst = 0, size = 0;
    for (const auto& [key, piece] : pieces_)
      for (std::size_t w = 0; w < piece.workers.size(); ++w)
        for (std::size_t i = 0; i < piece.workers[w].residual.size(); ++i) {
          const auto where = key_of(static_cast<int>(w), piece, i);
          const auto sum = sums.find(where), sent = decoded_.find(where);
          if (sum == sums.end()) continue;
          const double residual = static_cast<double>(piece.workers[w].residual[i]);
          worst = std::max(worst, std::abs(sum->second - sent->second - residual));
          size = std::max(size, std::abs(sum->second));
        }
    return size > 0 ? worst / size : worst;
  }

 private:
  const AsyncSetting& setting_;
  bool lossy_;
  std::map<std::pair<std::size_t, int>, Piece> pieces_;     // keyed by bucket and server
  std::map<std::pair<int, std::int64_t>, double> decoded_;  // decoded pushes, by worker and element
};

// Runs 60 exchanges in a drawn order.
void check_same(const AsyncSetting& setting, std::uint64_t seed) {
  const HashRng random(seed, "async codec arrivals");
  std::uint64_t draws = 0;
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(draws++, bound)); };
  const auto uniform = [&] { return static_cast<float>(2 * random.uniform(draws++) - 1); };
  Values weights(at(setting.parameters.elems()));
  for (float& weight : weights) weight = uniform();
  Ranks ranks(setting, weights, below(2) == 0);
  PlainLoop plain(setting, weights);
  std::map<std::pair<int, std::size_t>, std::int64_t> clocks;
  std::map<std::pair<int, std::int64_t>, double> sums;
  std::vector<std::int64_t> pending(setting.buckets.size());
  for (int t = 0; t < 60; ++t) {
    const int w = static_cast<int>(below(static_cast<std::uint64_t>(setting.workers)));
    const std::size_t b = at(below(setting.buckets.size()));
    if (below(12) == 0) {
      ranks.exchange(w, static_cast<int>(b), {}, 0, {}, true);
      plain.meet(w, b);
      continue;
    }
    const ArenaRange range = setting.buckets[b];
    Values after, gradients;
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      after.push_back(ranks.pulled(w, b, i) + 0.1f * uniform());
      gradients.push_back(uniform());
    }
    const std::int64_t clock = ++clocks[{w, b}];
    const double rate = below(6) == 0 ? 0 : 0.05;
    const AsyncBuffers::Update update{.weights = after.data(),
                                      .gradients = setting.gradients ? gradients.data() : nullptr,
                                      .share = 0.5,
                                      .rate = rate,
                                      .step = clock - 1};
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const bool statistic = i >= setting.parameters[1].begin && i < setting.parameters[1].end();
      if (setting.gradients && !statistic && rate == 0) continue;  // changes nothing and leaves no residual
      const std::size_t in = at(i - range.begin);
      const float value = setting.gradients && !statistic ? gradients[in] : 0.5f * (after[in] - ranks.pulled(w, b, i));
      sums[{w, i}] += static_cast<double>(value);
    }
    AsyncUpdate what{.clock = clock, .factor = 0.5, .new_version = ++pending[b] == setting.soft};
    if (what.new_version) pending[b] = 0;
    ranks.exchange(w, static_cast<int>(b), update, clock, what, false);
    plain.push(w, b, update, what);
  }
  for (std::size_t b = 0; b < setting.buckets.size(); ++b)
    for (int s = 0; s < setting.ranks; ++s) {
      const ElemRange part = setting.parts[b][at(s)];
      if (part.empty()) continue;
      const Values found = ranks.weights(s, static_cast<int>(b));
      for (std::int64_t i = setting.buckets[b].begin + part.begin; i < setting.buckets[b].begin + part.end; ++i) {
        REQUIRE(found[at(i - setting.buckets[b].begin - part.begin)] == plain.weight(b, s, i));
        for (int w = 0; w < setting.workers; ++w) REQUIRE(ranks.pulled(w, b, i) == plain.has(w, b, s, i));
      }
    }
  if (!setting.gradients && setting.exchange.error_feedback) CHECK(plain.worst_loss(sums) < 1e-6);
}

}  // namespace

TEST_CASE("coded pushes and answers are a plain loop of k workers, bit for bit, and nothing is lost",
          "[exchange][asynchronous][codec]") {
  for (const std::string& codec : codec_names())
    for (std::uint64_t seed = test_seed(); seed < test_seed() + 12; ++seed) {
      CAPTURE(codec, seed);
      check_same(draw_async_setting(codec, seed), seed);
    }
}

}  // namespace echelon
