// SPDX-License-Identifier: Apache-2.0
#include "planner/virtual_strom.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "comm/codec/indices.hpp"
#include "exchange/strom/protocol.hpp"
#include "planner/virtual_traffic.hpp"

namespace echelon::inline planner {
namespace {

struct StromScene {
  StromTraffic traffic;
  int ranks = 1, steps = 1;
  double codec_s = 0;
};

// A replica whose steps are pauses for input, forward, back-propagation, update and coding.
class StromActor final : public ProtocolHost {
 public:
  StromActor(const StrategySetting& setting, const StromScene& scene, int rank, VirtualWorld& world)
      : setting_(setting),
        scene_(scene),
        factors_(drawn_factors(setting.step.variation, scene.ranks, rank, scene.steps)),
        free_(scene.traffic.rooms.size(), kStromSlots) {
    protocol_.emplace(rank, scene.ranks, scene.traffic);
    actor.emplace(world.transport(rank), *protocol_, *this, [this] { return ended_; });
    begin_step();
  }

  void on_notified(Token token, double) override {
    const int b = StromProtocol::bucket_of(token);
    switch (StromProtocol::word_of(token)) {
      case Word::arrived:
        if (meets_) return protocol_->take(b, StromProtocol::origin_of(token));
        arrived_.emplace_back(b, StromProtocol::origin_of(token));
        return;
      case Word::freed: ++free_[static_cast<std::size_t>(b)]; return;
      case Word::gathered:
        if (--gathering_ == 0) actor->at(actor->now_s(), [this] { end_step(); });
        return;
      case Word::met: return actor->post(StromProtocol::token(Word::done));
      default: ended_ = true;
    }
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<ProtocolActor> actor;
  std::vector<double> ended_s;  // by step

 private:
  using Word = StromProtocol::Word;

  bool asynchronous() const { return scene_.traffic.asynchronous; }
  void begin_step() {
    if (asynchronous()) take_all();
    if (ended_s.size() == factors_.size()) return end();
    const double step_s = factors_[ended_s.size()] * setting_.step.total_s() + scene_.codec_s;
    actor->at(actor->now_s() + step_s, [this] { send(); });
  }
  void send() {
    gathering_ = static_cast<int>(free_.size());
    for (std::size_t b = 0; b < free_.size(); ++b) {
      if (asynchronous() && free_[b] == 0) continue;  // held back: the update stays in the residual
      --free_[b];
      protocol_->draft(static_cast<int>(b));
      actor->post(protocol_->commit(static_cast<int>(b), scene_.traffic.rooms[b]));
    }
    if (asynchronous()) end_step();
  }
  void end_step() {
    if (!asynchronous()) take_all();
    ended_s.push_back(actor->now_s());
    begin_step();
  }
  // In synchronous rounds the first message of each origin belongs to this round; one of the next round may have come
  // too.
  void take_all() {
    std::vector<std::pair<int, int>> later;
    for (const auto& one : arrived_) {
      const bool next = !asynchronous() && std::find(taken_.begin(), taken_.end(), one) != taken_.end();
      if (next) {
        later.push_back(one);
        continue;
      }
      taken_.push_back(one);
      actor->post(StromProtocol::token(Word::taken, one.first, one.second));
    }
    taken_.clear();
    arrived_ = std::move(later);
  }
  void end() {
    meets_ = asynchronous();
    actor->post(meets_ ? protocol_->meet() : StromProtocol::token(Word::done));
  }

  const StrategySetting& setting_;
  const StromScene& scene_;
  std::vector<double> factors_;
  std::vector<int> free_;                             // free slots, by bucket
  std::vector<std::pair<int, int>> arrived_, taken_;  // bucket, origin
  std::optional<StromProtocol> protocol_;
  int gathering_ = 0;
  bool meets_ = false, ended_ = false;
};

}  // namespace

double strom_message_bytes(const StromKeys& keys, double elems) {
  const double entries = keys.density * elems;
  if (keys.indices == StromIndices::raw) return 4 + 4 * entries;
  const IndexFormat format = format_for(IndexCoding::golomb, true, static_cast<std::size_t>(std::ceil(entries)),
                                        static_cast<std::int64_t>(std::ceil(elems)));
  return 5 + entries * expected_bits(format, keys.density) / 8;
}

double strom_codec_s(const StrategySetting& setting, int replicas) {
  if (!setting.codec_takes_time) return 0;
  const CodecSpeed& speed = setting.step.codec_speed(coding_of(setting.exchange()));
  return setting.work.bytes() *
         (1 / speed.encode_bytes_per_s + (replicas - 1) * setting.exchange().strom.density / speed.decode_bytes_per_s);
}

bool can_simulate_strom(const StrategySetting& setting, int replicas) {
  const double steps = setting.step.variation.varies() ? kVaryingSteps : kEqualSteps;
  const auto buckets = static_cast<double>(setting.work.buckets.size());
  return 2 * steps * replicas * (replicas - 1.0) * buckets <= kMostMessages;
}

double simulated_strom_s(const StrategySetting& setting, int replicas) {
  const StromKeys& keys = setting.exchange().strom;
  StromScene scene{.traffic = {.asynchronous = keys.rounds == StromRounds::asynchronous,
                               .ring = keys.topology == StromTopology::ring,
                               .rooms = {},
                               .first_tag = 0},
                   .ranks = replicas,
                   .steps = setting.step.variation.varies() ? kVaryingSteps : kEqualSteps,
                   .codec_s = strom_codec_s(setting, replicas)};
  for (const GradientBucket& bucket : setting.work.buckets)
    scene.traffic.rooms.push_back(
        static_cast<std::size_t>(std::ceil(strom_message_bytes(keys, static_cast<double>(bucket.elems)))));
  VirtualWorld world(replicas, virtual_network(setting, replicas, 1));
  return run_actors(
      world, replicas, [&](int rank) { return std::make_unique<StromActor>(setting, scene, rank, world); },
      [](const StromActor& rank) -> const std::vector<double>& { return rank.ended_s; });
}

// After its step a replica sends one message per bucket to all others, directly or around the ring.
double strom_formula_s(const StrategySetting& setting, int replicas) {
  const StromKeys& keys = setting.exchange().strom;
  const Link& link = replicas > setting.pricer.ranks_a_host() ? setting.network().between : setting.network().inside;
  const double peers = replicas - 1, depth = keys.topology == StromTopology::ring ? peers : 1;
  const double sharers = std::min(setting.pricer.ranks_a_host(), replicas);
  const auto messages = sharers * peers * static_cast<double>(setting.work.buckets.size());
  double wire_s = (depth + messages) * link.latency_s / 2;  // each message occupies its card for half a latency
  for (const GradientBucket& bucket : setting.work.buckets)
    wire_s += sharers * peers * strom_message_bytes(keys, static_cast<double>(bucket.elems)) / link.bytes_per_s;
  const double codec_s = strom_codec_s(setting, replicas);
  if (keys.rounds == StromRounds::asynchronous) return std::max(setting.step.total_s() + codec_s, wire_s);
  return setting.step.total_s() * setting.step.variation.largest_of(replicas) + wire_s + codec_s;
}

double strom_step_s(const StrategySetting& setting, int replicas) {
  if (can_simulate_strom(setting, replicas)) return simulated_strom_s(setting, replicas);
  setting.pricer.note_formula(0.02);
  return strom_formula_s(setting, replicas);
}

}  // namespace echelon::inline planner
