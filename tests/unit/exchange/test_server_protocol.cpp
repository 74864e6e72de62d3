// SPDX-License-Identifier: Apache-2.0
// The synchronous server's state machine on random schedules of virtual time: every push is added exactly once and in
// the promised order, every worker gets every server's weights, all ranks end, and messages number as priced.
#include <catch2/catch.hpp>
#include <map>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "comm/collective/server.hpp"
#include "comm/disturbed.hpp"
#include "exchange/server/protocol.hpp"
#include "tests/support/protocol_world.hpp"
#include "tests/support/schedules.hpp"

namespace echelon {
namespace {

struct Schedule {
  int ranks = 1, servers = 1, steps = 3;
  bool dedicated = false;
  std::vector<std::int64_t> bucket_elems;
  std::int64_t piece_elems = 1;
  int sends = 8;
  double delay_s = 0;
  VirtualNetwork network;
};

Schedule draw_schedule(std::uint64_t seed) {
  const HashRng random(seed, "server schedule");
  std::uint64_t i = 0;
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(i++, bound)); };
  Schedule schedule;
  schedule.ranks = 2 + static_cast<int>(below(6));
  schedule.dedicated = below(3) == 0;
  schedule.servers =
      1 + static_cast<int>(below(static_cast<std::uint64_t>(schedule.ranks - (schedule.dedicated ? 1 : 0))));
  for (std::int64_t b = 1 + below(3); b > 0; --b) schedule.bucket_elems.push_back(1 + below(20));
  schedule.piece_elems = 1 + below(8);
  schedule.sends = 1 + static_cast<int>(below(8));
  schedule.delay_s = below(2) == 0 ? 0 : 40e-6;
  schedule.network.between_hosts.jitter = static_cast<double>(below(4));
  schedule.network.eager_bytes = below(2) == 0 ? 0 : 1 << 20;
  schedule.network.seed = seed;
  return schedule;
}

AllreduceRequest request_of(const Schedule& schedule, int rank, std::int64_t elems) {
  AllreduceRequest request{
      .rank = rank, .ranks = schedule.ranks, .elems = elems, .segment_elems = schedule.piece_elems};
  request.servers = schedule.servers, request.dedicated_servers = schedule.dedicated;
  return request;
}

// One rank. Weights and gradients are integers that tell who gave them at which step; a step of the optimiser adds the
// sum to the weights.
class Rank final : public ServerMemory, public ProtocolHost {
 public:
  Rank(const Schedule& schedule, int rank, VirtualWorld& world)
      : schedule_(schedule), rank_(rank), random_(schedule.network.seed, "rank") {
    std::vector<ServerBucket> buckets;
    for (std::size_t b = 0; b < schedule.bucket_elems.size(); ++b) {
      const AllreduceRequest request = request_of(schedule, rank, schedule.bucket_elems[b]);
      workers_ = server_workers(request);
      parts_.push_back(server_parts(request));
      buckets.push_back({.parts = parts_.back(), .tag = 10 + 2 * static_cast<int>(b), .priority = static_cast<int>(b)});
      gradients_.emplace_back(static_cast<std::size_t>(schedule.bucket_elems[b]));
      weights_.emplace_back(static_cast<std::size_t>(schedule.bucket_elems[b]));
    }
    protocol_.emplace(rank, schedule.ranks, workers_, buckets, *this);
    settled_.resize(buckets.size());
    auto transport =
        make_disturbed(world.transport(rank), {.seed = schedule.network.seed, .delay_s = schedule.delay_s});
    actor.emplace(
        std::move(transport), *protocol_, *this, [this] { return over(); }, schedule.sends);
    for (std::size_t b = 0; b < buckets.size(); ++b) begin(static_cast<int>(b));
  }

  // Returns what worker r gives to element i of bucket b in step t.
  static std::int64_t gradient(int r, std::int64_t t, int b, std::int64_t i) {
    return (r + 1) * 1000 + t * 7 + b * 3 + i;
  }

  bool over() const {
    for (const std::int64_t steps : settled_)
      if (steps < schedule_.steps) return false;
    return true;
  }
  void check() const {
    for (std::size_t b = 0; b < weights_.size(); ++b)
      for (std::int64_t i = 0; i < schedule_.bucket_elems[b]; ++i) {
        const ElemRange own = parts_[b][static_cast<std::size_t>(rank_)];
        if (rank_ >= workers_ && (i < own.begin || i >= own.end)) continue;  // a dedicated server holds only its part
        std::int64_t expected = 0;
        for (std::int64_t t = 0; t < schedule_.steps; ++t)
          for (int r = 0; r < workers_; ++r) expected += gradient(r, t, static_cast<int>(b), i);
        ECHELON_CHECK_EQ(weights_[b][static_cast<std::size_t>(i)], expected, "rank {} bucket {} element {}", rank_, b,
                         i);
      }
  }

  std::int64_t piece_elems(int) const override { return schedule_.piece_elems; }
  Bytes push(int b, int, ElemRange piece) override { return of(gradients_, b, piece); }
  Bytes push_room(int b, int worker, int slot, ElemRange piece) override {
    std::vector<std::int64_t>& room = rooms_[{b, worker, slot}];
    ECHELON_CHECK(room.empty(), "a slot was given away twice");
    room.resize(static_cast<std::size_t>(piece.elems()));
    return {room.data(), room.size() * sizeof(std::int64_t)};
  }
  void add(int b, int worker, int slot, ElemRange piece, std::size_t bytes, bool replaces) override {
    std::vector<std::int64_t>& room = rooms_[{b, worker, slot}];
    ECHELON_CHECK_EQ(bytes, room.size() * sizeof(std::int64_t));
    std::vector<int>& order = added_[{b, piece.begin}];
    ECHELON_CHECK_EQ(replaces, order.empty() && rank_ >= workers_);
    if (!order.empty()) {
      const auto behind = [&](int r) { return (rank_ - r + schedule_.ranks) % schedule_.ranks; };
      ECHELON_CHECK_LT(behind(order.back()), behind(worker), "pieces are added in the order of ranks");
    }
    order.push_back(worker);
    for (std::int64_t i = 0; i < piece.elems(); ++i) {
      std::int64_t& sum = gradients_[static_cast<std::size_t>(b)][static_cast<std::size_t>(piece.begin + i)];
      sum = (replaces ? 0 : sum) + room[static_cast<std::size_t>(i)];
    }
    room.clear();
  }
  Bytes pull(int b, ElemRange piece) override { return of(weights_, b, piece); }
  Bytes pull_room(int b, int, ElemRange piece) override { return of(weights_, b, piece); }
  void take(int, int, ElemRange, std::size_t) override {}

  void on_notified(Token token, double now_s) override {
    const int b = ServerProtocol::bucket_of(token);
    const auto at = static_cast<std::size_t>(b);
    if (ServerProtocol::word_of(token) == ServerProtocol::Word::settled) {
      messages += protocol_->take_sent(b).messages_sent;
      if (++settled_[at] < schedule_.steps) begin(b);
      return;
    }
    messages += protocol_->take_sent(b).messages_sent;
    actor->at(now_s + pause_s(), [this, b, at] {
      const ElemRange own = parts_[at][static_cast<std::size_t>(rank_)];
      for (std::int64_t i = own.begin; i < own.end; ++i)
        weights_[at][static_cast<std::size_t>(i)] += gradients_[at][static_cast<std::size_t>(i)];
      std::int64_t pieces = 0;
      for (auto& [key, order] : added_)
        if (std::get<0>(key) == b) {
          ECHELON_CHECK_EQ(static_cast<int>(order.size()), workers_ - (rank_ < workers_ ? 1 : 0), "each push once");
          order.clear();
          ++pieces;
        }
      actor->post(ServerProtocol::token(ServerProtocol::Word::updated, b));
    });
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<test::ProtocolActor> actor;
  std::uint64_t messages = 0;

 private:
  Bytes of(std::vector<std::vector<std::int64_t>>& all, int b, ElemRange piece) {
    return {all[static_cast<std::size_t>(b)].data() + piece.begin,
            static_cast<std::size_t>(piece.elems()) * sizeof(std::int64_t)};
  }
  double pause_s() { return 100e-6 * random_.at(static_cast<std::uint64_t>(rank_)).uniform(draws_++); }
  // Makes the gradient of bucket b of the next step, after some compute.
  void begin(int b) {
    const auto at = static_cast<std::size_t>(b);
    actor->at(actor->now_s() + pause_s(), [this, b, at] {
      for (std::size_t i = 0; i < gradients_[at].size(); ++i)
        gradients_[at][i] = rank_ < workers_ ? gradient(rank_, settled_[at], b, static_cast<std::int64_t>(i)) : -1;
      actor->post(ServerProtocol::token(ServerProtocol::Word::gradient, b));
    });
  }

  const Schedule& schedule_;
  int rank_, workers_ = 0;
  HashRng random_;
  std::uint64_t draws_ = 0;
  std::vector<Parts> parts_;
  std::vector<std::vector<std::int64_t>> gradients_, weights_;
  std::map<std::tuple<int, int, int>, std::vector<std::int64_t>> rooms_;
  std::map<std::pair<int, std::int64_t>, std::vector<int>> added_;  // workers, keyed by bucket and piece
  std::vector<std::int64_t> settled_;
  std::optional<ServerProtocol> protocol_;
};

void run_schedule(std::uint64_t seed) {
  const Schedule schedule = draw_schedule(seed);
  const test::ProtocolRun<Rank> run(schedule.ranks, schedule.network, schedule);
  std::uint64_t messages = 0;
  std::int64_t priced = 0;
  for (const auto& rank : run.ranks()) {
    rank->check();
    messages += rank->messages;
    ECHELON_CHECK(rank->actor->waits().empty(), "a wait was not ended");
  }
  for (const std::int64_t elems : schedule.bucket_elems)
    priced += price_server(request_of(schedule, 0, elems)).messages;
  ECHELON_CHECK_EQ(messages, static_cast<std::uint64_t>(priced * schedule.steps));
}

}  // namespace

TEST_CASE("the server's protocol on 200 random schedules", "[exchange][protocol]") {
  test::run_schedules(200, run_schedule);
}
TEST_CASE("the server's protocol on 10,000 random schedules", "[exchange][protocol][.soak]") {
  test::run_schedules(10'000, run_schedule);
}

}  // namespace echelon
