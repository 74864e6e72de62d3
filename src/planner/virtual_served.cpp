// SPDX-License-Identifier: Apache-2.0
#include "planner/virtual_served.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "exchange/asynchronous/protocol.hpp"
#include "exchange/server/protocol.hpp"
#include "planner/virtual_traffic.hpp"

namespace echelon::inline planner {
namespace {

// A rank of the synchronous server. The update of a served part takes its share of the optimiser's time.
class ServerRank final : public ServerMemory, public ProtocolHost {
 public:
  ServerRank(const StrategySetting& setting, Traffic& traffic, int rank, VirtualWorld& world)
      : traffic_(traffic), setting_(setting), left_(setting.work.buckets.size(), traffic.steps) {
    std::vector<ServerBucket> buckets;
    for (std::size_t b = 0; b < traffic.parts.size(); ++b)
      buckets.push_back(
          {.parts = traffic.parts[b], .tag = 2 * static_cast<int>(b), .priority = traffic.priority(setting, b)});
    protocol_.emplace(rank, traffic.ranks, traffic.workers, buckets, *this);
    actor.emplace(
        world.transport(rank), *protocol_, *this, [this] { return over(); }, ProtocolActor::kSends,
        traffic.frame_bytes(), traffic.short_bytes());
    if (rank >= traffic.workers) {
      for (std::size_t b = 0; b < left_.size(); ++b) give(static_cast<int>(b));
      return;
    }
    worker.emplace(setting, 0.0, traffic.factors(setting, rank),
                   VirtualWorker::Calls{.give = [this](int b) { give(b); }, .ended = [] {}});
    worker->begin(*actor);
  }

  std::int64_t piece_elems(int) const override { return traffic_.piece; }
  Bytes push(int, int, ElemRange piece) override { return of(piece); }
  Bytes push_room(int, int, int, ElemRange piece) override { return of(piece); }
  void add(int, int, int, ElemRange, std::size_t, bool) override {}
  Bytes pull(int, ElemRange piece) override { return of(piece); }
  Bytes pull_room(int, int, ElemRange piece) override { return of(piece); }
  void take(int, int, ElemRange, std::size_t) override {}

  void on_notified(Token token, double now_s) override {
    const int b = ServerProtocol::bucket_of(token);
    const auto at = static_cast<std::size_t>(b);
    if (ServerProtocol::word_of(token) == ServerProtocol::Word::summed) {
      const double share =
          static_cast<double>(setting_.work.buckets[at].elems) / static_cast<double>(setting_.work.elems);
      actor->at(now_s + setting_.step.optimiser_s * share / traffic_.servers,
                [this, b] { actor->post(ServerProtocol::token(ServerProtocol::Word::updated, b)); });
      return;
    }
    --left_[at];
    if (worker)
      worker->settled(b);
    else if (left_[at] > 0)
      give(b);
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<ProtocolActor> actor;
  std::optional<VirtualWorker> worker;  // none on a dedicated server

 private:
  Bytes of(ElemRange piece) { return {traffic_.scratch.data(), static_cast<std::size_t>(piece.elems())}; }
  bool over() const { return *std::max_element(left_.begin(), left_.end()) == 0; }
  void give(int b) { actor->post(ServerProtocol::token(ServerProtocol::Word::gradient, b)); }

  Traffic& traffic_;
  const StrategySetting& setting_;
  std::vector<int> left_;  // remaining steps, by bucket
  std::optional<ServerProtocol> protocol_;
};

// A rank of the asynchronous server, with or without a bound.
class AsyncServedRank final : public AsyncMemory, public ProtocolHost {
 public:
  AsyncServedRank(const StrategySetting& setting, Traffic& traffic, int rank, VirtualWorld& world)
      : traffic_(traffic), rank_(rank) {
    std::vector<AsyncBucket> buckets;
    for (std::size_t b = 0; b < traffic.parts.size(); ++b)
      buckets.push_back({.parts = traffic.parts[b],
                         .tag = 2 * static_cast<int>(b),
                         .priority = traffic.priority(setting, b),
                         .recorded = {}});
    AsyncRules rules;
    rules.soft = setting.exchange().asynchronous.soft;
    rules.bound = async_bound(setting.exchange());
    protocol_.emplace(rank, traffic.workers, rules, std::move(buckets), *this);
    actor.emplace(
        world.transport(rank), *protocol_, *this, [this] { return ended_; }, ProtocolActor::kSends,
        traffic.frame_bytes(), traffic.short_bytes());
    if (rank >= traffic.workers) return;
    worker.emplace(setting, 1.0, traffic.factors(setting, rank),
                   VirtualWorker::Calls{.give = [this](int b) { post(AsyncProtocol::Word::push, b); },
                                        .ended = [this] { last_step_ = true, check_if_done(); }});
    worker->begin(*actor);
  }

  Message push(int b, int server) override { return message(b, server); }
  Room answer_room(int b, int server) override { return room(b, server); }
  void take(int, int, const AsyncHeader&, Payload) override {}
  Room push_room(int b, int from) override { return room_of(b, rank_, from); }
  void apply(int, int, const AsyncUpdate&, const AsyncHeader&, Payload) override {}
  void flush(int) override {}
  Message answer(int b, int to, const AsyncHeader&) override {
    const Room own = room_of(b, rank_, to);
    return {.data = own.data, .bytes = own.bytes};
  }

  void on_notified(Token token, double) override {
    if (AsyncProtocol::word_of(token) == AsyncProtocol::Word::ended) ended_ = true;
    if (AsyncProtocol::word_of(token) != AsyncProtocol::Word::settled) return;
    worker->settled(AsyncProtocol::bucket_of(token));
    check_if_done();
  }
  void failed(std::exception_ptr error) override { std::rethrow_exception(error); }

  std::optional<ProtocolActor> actor;
  std::optional<VirtualWorker> worker;

 private:
  // A buffer for each bucket and peer, because protocols read the headers in it. A message has the bytes of its part,
  // including the header.
  Room room_of(int b, int server, int peer) {
    const auto part = traffic_.parts[static_cast<std::size_t>(b)][static_cast<std::size_t>(server)].elems();
    std::vector<std::byte>& buffer = buffers_[{b, server, peer}];
    buffer.resize(std::max(sizeof(AsyncHeader), static_cast<std::size_t>(part)));
    return {buffer.data(), buffer.size()};
  }
  Room room(int b, int server) { return room_of(b, server, -1); }
  Message message(int b, int server) {
    const Room own = room_of(b, server, -2);
    return {.data = own.data, .bytes = own.bytes};
  }
  void post(AsyncProtocol::Word word, int b = 0) { actor->post(AsyncProtocol::token(word, b)); }
  void check_if_done() {
    if (!last_step_ || done_ || !worker->all_there()) return;
    done_ = true;
    post(AsyncProtocol::Word::done);
  }

  Traffic& traffic_;
  int rank_;
  std::map<std::tuple<int, int, int>, std::vector<std::byte>> buffers_;
  std::optional<AsyncProtocol> protocol_;
  bool last_step_ = false, done_ = false, ended_ = false;
};

}  // namespace

bool can_simulate_served(const StrategySetting& setting, int replicas) {
  const ExchangeConfig& exchange = setting.exchange();
  if (exchange.codec != "none" || setting.config.optimiser.clip_norm > 0) return false;
  if (exchange.server.partition != ServerPartition::ranges) return false;
  const double servers = exchange.server.ranks > 0 ? static_cast<double>(exchange.server.ranks)
                         : exchange.servers > 0    ? static_cast<double>(exchange.servers)
                                                   : replicas;
  const double whole = setting.work.bytes() / (exchange.segment_kb * 1024) / servers;
  const double buckets = static_cast<double>(setting.work.buckets.size());
  const double steps = setting.step.variation.varies() ? kVaryingSteps : kEqualSteps;
  return 2 * steps * replicas * servers * std::max(buckets, whole) <= kMostMessages;
}

double simulated_server_s(const StrategySetting& setting, int replicas) {
  return run_virtual<ServerRank>(setting, replicas);
}

double simulated_async_s(const StrategySetting& setting, int replicas) {
  return run_virtual<AsyncServedRank>(setting, replicas);
}

}  // namespace echelon::inline planner
