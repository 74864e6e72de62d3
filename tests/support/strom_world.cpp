// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strom_world.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "exchange/strom/message.hpp"
#include "exchange/strom/protocol.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/strom_observer.hpp"
#include "tests/support/watched_machine.hpp"

namespace echelon::test {
namespace {

using Bytes = StromOutcome::Bytes;
using Word = StromProtocol::Word;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr int kFirstTag = 20;  // tag of bucket 0's messages; acknowledgements have the tag above

StromTraffic traffic_of(const StromSchedule& schedule) {
  StromTraffic traffic{
      .asynchronous = schedule.asynchronous, .ring = schedule.ring, .rooms = {}, .first_tag = kFirstTag};
  for (const std::int64_t elems : schedule.buckets)
    traffic.rooms.push_back(strom_room(elems, schedule.format.dtype, schedule.warmup_steps > 0));
  return traffic;
}

// A replica, with its weights and residual, and its host, whose steps are pauses.
class StromRank final : public ProtocolHost {
 public:
  StromRank(const StromSchedule& schedule, StromObserver& observer, int rank, VirtualWorld& world)
      : schedule_(schedule),
        observer_(observer),
        rank_(rank),
        random_(HashRng(schedule.network.seed, "strom rank").at(at(rank))),
        weights(at(schedule.elems()) * size_of(schedule.format.dtype)),
        residual(weights.size()),
        changed_(weights.size()),
        free_(schedule.buckets.size(), kStromSlots),
        arrived_(schedule.buckets.size()) {
    std::int64_t begin = 0;
    for (const std::int64_t elems : schedule.buckets) {
      const ArenaRange range{begin, begin += elems};
      coders_.emplace_back(schedule.format, range, std::vector<ArenaRange>{range});
    }
    protocol.emplace(rank, schedule.ranks, traffic_of(schedule));
    watched_.emplace(*protocol, true);
    watched_->observe = [this](int peer, int tag, bool sent) { count_on_link(peer, tag, sent); };
    auto transport = make_disturbed(world.transport(rank), schedule.disturbance[at(rank)]);
    actor.emplace(
        std::move(transport), *watched_, *this, [this] { return ended_; }, schedule.sends);
    begin_epoch();
  }

  void on_notified(Token token, double) override {
    const int b = StromProtocol::bucket_of(token), origin = StromProtocol::origin_of(token);
    wire += protocol->take_sent();
    switch (StromProtocol::word_of(token)) {
      case Word::arrived:
        if (!at_meeting_) return arrived_[at(b)].push_back({origin, protocol->newest(b, origin)});
        apply(b, {origin, protocol->newest(b, origin)});
        return protocol->take(b, origin);
      case Word::freed: ++free_[at(b)]; return;
      case Word::gathered:
        if (--gathering_ == 0) actor->at(actor->now_s(), [this] { end_round(); });
        return;
      case Word::met:
        at_meeting_ = false;
        observer_.met(rank_);
        actor->at(actor->now_s(), [this] { ++epoch_, begin_epoch(); });
        return;
      case Word::ended: ended_ = true; return;
      default: ECHELON_CHECK(false, "the host is told a word of its own");
    }
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

 private:
  struct Arrival {
    int origin;
    StromMessage message;
  };

  const StromSchedule& schedule_;
  StromObserver& observer_;
  int rank_;
  HashRng random_;

 public:
  Bytes weights, residual;
  std::optional<StromProtocol> protocol;
  std::optional<ProtocolActor> actor;
  std::vector<StromEvent> events;
  WireCounters wire;
  std::int64_t held = 0;
  double ended_s = 0;

 private:
  // Checks that no more messages per origin and bucket are on a link than there are slots.
  void count_on_link(int peer, int tag, bool sent) {
    const bool ack = (tag - kFirstTag) % 2 == 1;
    if (sent == ack || !schedule_.asynchronous) return;
    int& under_way = on_links_[{peer, ack ? tag - 1 : tag}];
    under_way += sent ? 1 : -1;
    ECHELON_CHECK_LE(under_way, kStromSlots, "messages from rank {} to rank {}, tag {}", rank_, peer, tag);
  }
  void begin_epoch() {
    if (epoch_ == static_cast<int>(schedule_.steps[at(rank_)].size())) {
      actor->post(StromProtocol::token(Word::done));
      return;
    }
    left_ = schedule_.steps[at(rank_)][at(epoch_)];
    begin_step();
  }

  void begin_step() {
    for (std::size_t b = 0; b < arrived_.size() && schedule_.asynchronous; ++b) take_all(static_cast<int>(b), true);
    if (left_-- == 0) return end_epoch();
    const double spread = 1 + schedule_.spread * (random_.uniform(draws_++) - 0.5);
    actor->at(actor->now_s() + schedule_.compute_s * schedule_.slowness[at(rank_)] * spread, [this] { end_step(); });
  }

  void end_epoch() {
    if (!schedule_.asynchronous) {
      ++epoch_;
      return begin_epoch();
    }
    at_meeting_ = true;
    observer_.came(rank_);
    actor->post(protocol->meet());
  }

  void end_step() {
    ended_s = actor->now_s();
    make_update(schedule_, rank_, step_, weights, changed_);
    StromEvent& event = events.emplace_back(StromEvent{.origin = rank_, .bucket = 0, .held = {}});
    gathering_ = static_cast<int>(coders_.size());
    std::vector<Token> posts;
    for (int b = 0; b < static_cast<int>(coders_.size()); ++b) {
      StromCoder& coder = coders_[at(b)];
      const StromCoder::Update update{changed_.data(), weights.data(), residual.data(), 1};
      observer_.updated(rank_, coder.bucket(), changed_, weights);
      event.held.push_back(schedule_.asynchronous && free_[at(b)] == 0);
      if (event.held.back()) {
        coder.hold(update);
        ++held;
        continue;
      }
      std::byte* room = protocol->draft(b);
      const std::size_t bytes =
          step_ < schedule_.warmup_steps ? coder.encode_dense(update, room) : coder.encode(update, room);
      --free_[at(b)];
      own_.resize(coders_.size());
      own_[at(b)] = {rank_, {room, bytes}};
      observer_.sent(rank_, b, own_[at(b)].message);
      posts.push_back(protocol->commit(b, bytes));
      if (schedule_.asynchronous) add(b, own_[at(b)].message);
    }
    ++step_;
    for (const Token token : posts) actor->post(token);
    if (schedule_.asynchronous) begin_step();
  }

  // Ends a synchronous round: applies all messages of the step in the order of ranks.
  void end_round() {
    for (int b = 0; b < static_cast<int>(coders_.size()); ++b) {
      std::vector<Arrival> round(at(schedule_.ranks));
      std::deque<Arrival> later;
      for (const Arrival& arrival : arrived_[at(b)])
        round[at(arrival.origin)].message.empty() ? static_cast<void>(round[at(arrival.origin)] = arrival)
                                                  : later.push_back(arrival);
      arrived_[at(b)] = later;
      for (int origin = 0; origin < schedule_.ranks; ++origin) {
        if (origin == rank_) {
          add(b, own_[at(b)].message);
          continue;
        }
        apply(b, round[at(origin)]);
        actor->post(StromProtocol::token(Word::taken, b, origin));
      }
    }
    observer_.ended_round(rank_, weights);
    begin_step();
  }

  void take_all(int b, bool post) {
    for (const Arrival& arrival : std::exchange(arrived_[at(b)], {})) {
      apply(b, arrival);
      if (post) actor->post(StromProtocol::token(Word::taken, b, arrival.origin));
    }
  }
  void apply(int b, const Arrival& arrival) {
    observer_.applied(rank_, arrival.origin, b, arrival.message);
    events.push_back({.origin = arrival.origin, .bucket = b, .held = {}});
    add(b, arrival.message);
  }
  void add(int b, StromMessage message) {
    const ArenaRange range = coders_[at(b)].bucket();
    const DType dtype = schedule_.format.dtype;
    add_message(message, schedule_.format.entropy, weights.data() + at(range.begin) * size_of(dtype), dtype,
                range.elems());
  }

  Bytes changed_;
  std::vector<int> free_;
  std::vector<std::deque<Arrival>> arrived_;
  std::vector<StromCoder> coders_;
  std::vector<Arrival> own_;
  std::map<std::pair<int, int>, int> on_links_;  // by receiver and tag: messages that are not acknowledged yet
  std::optional<WatchedMachine> watched_;
  std::uint64_t draws_ = 0;
  std::int64_t step_ = 0, left_ = 0;
  int epoch_ = 0, gathering_ = 0;
  bool at_meeting_ = false, ended_ = false;
};

}  // namespace

std::int64_t StromSchedule::elems() const { return std::accumulate(buckets.begin(), buckets.end(), std::int64_t{0}); }

StromOutcome run_strom(const StromSchedule& schedule) {
  StromObserver observer(schedule);
  ProtocolRun<StromRank> run(schedule.ranks, schedule.network, schedule, std::ref(observer));
  StromOutcome outcome;
  std::uint64_t counted = 0;
  for (const auto& rank : run.ranks()) {
    observer.ended(static_cast<int>(outcome.events.size()), rank->weights, rank->residual);
    outcome.events.push_back(rank->events);
    outcome.weights.push_back(rank->weights);
    outcome.residuals.push_back(rank->residual);
    outcome.held.push_back(rank->held);
    outcome.ended_s.push_back(rank->ended_s);
    outcome.sent_messages += rank->actor->wire().messages_sent;
    outcome.sent_bytes += rank->actor->wire().bytes_sent;
    counted += rank->wire.messages_sent;
  }
  ECHELON_CHECK_EQ(counted, outcome.sent_messages, "messages that hosts were told of");
  ECHELON_CHECK_EQ(outcome.sent_messages, observer.messages(), "messages on the wire");
  ECHELON_CHECK_EQ(outcome.sent_bytes, observer.bytes(), "bytes on the wire");
  outcome.messages = observer.all_sent();
  return outcome;
}

}  // namespace echelon::test
