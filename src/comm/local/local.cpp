// SPDX-License-Identifier: Apache-2.0
#include "comm/local/local.hpp"

#include <fmt/format.h>

#include <deque>
#include <map>

#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/counters.hpp"
#include "comm/local/world.hpp"
#include "comm/shared_channel.hpp"

namespace echelon::inline comm {
namespace {

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalWorld> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~LocalTransport() override {
    for (LocalOp& op : ops_)
      if (op.state.load(std::memory_order_acquire) == OpState::pending) world_->withdraw(op);
  }

  int rank() const override { return rank_; }
  int size() const override { return world_->ranks(); }
  std::string name() const override { return "local"; }
  const std::vector<int>& hosts() const override { return world_->hosts(); }
  const std::vector<std::string>& host_names() const override { return world_->host_names(); }
  const std::vector<int>& machines() const override { return world_->machines(); }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    check_peer(peer);
    const auto [request, op] = begin();
    op->sending = true;
    op->box = op->peer = peer;
    op->tag = tag;
    op->src = data;
    op->bytes = bytes;
    counters_.sent(peer, bytes);
    world_->send(*op);
    return request;
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    if (peer != kAnySource) check_peer(peer);
    const auto [request, op] = begin();
    op->sending = false;
    op->box = rank_;
    op->peer = peer;
    op->tag = tag;
    op->dst = data;
    op->bytes = bytes;
    world_->receive(*op);
    return request;
  }

  std::optional<Completion> test(Request& request) override {
    LocalOp& op = ops_[static_cast<std::size_t>(request.id)];
    const OpState state = op.state.load(std::memory_order_acquire);
    if (state == OpState::pending) {
      world_->check();
      return std::nullopt;
    }
    const Completion completion{op.peer, op.bytes};
    const int tag = op.tag;
    const bool received = !op.sending && !op.library;
    release(request, op);
    if (state == OpState::truncated)
      throw EnvironmentError(
          fmt::format("rank {}: a message of {} bytes from rank {} with tag {} does not fit its receive", rank_,
                      completion.bytes, completion.peer, tag));
    if (state == OpState::mismatched)
      throw EnvironmentError("library all-reduce: the ranks gave different sizes, or their calls in different orders");
    if (received) counters_.received(completion.bytes);
    return completion;
  }

  void cancel(Request& request) override {
    LocalOp& op = ops_[static_cast<std::size_t>(request.id)];
    if (op.state.load(std::memory_order_acquire) == OpState::pending) world_->withdraw(op);
    release(request, op);
  }

  bool has_library_allreduce() const override { return true; }
  Request iallreduce(void* data, std::size_t elems, DType dtype) override {
    ECHELON_CHECK(dtype == DType::f32 || dtype == DType::f64, "sums are of f32 or f64");
    const auto [request, op] = begin();
    op->library = true;
    op->peer = -1;
    op->dst = data;
    op->bytes = elems * size_of(dtype);
    counters_.library(op->bytes);
    world_->reduce(*op, next_reduce_++, elems, dtype);
    return request;
  }

  std::shared_ptr<SharedBlock> share(std::size_t bytes) override { return world_->share(rank_, next_share_++, bytes); }
  bool shares_channels() const override { return true; }
  // The ranks are threads, so this never has to wait for a rank.
  SharedChannel* shared_channel(int tag, int&) override {
    world_->check();
    std::unique_ptr<SharedChannel>& channel = channels_[tag];
    if (!channel) channel = std::make_unique<SharedChannel>(world_->channel_block(tag), on_this_host(), rank_);
    return channel.get();
  }
  std::unique_ptr<Transport> split(int color, int key) override {
    world_->check();
    return world_->split(rank_, next_split_++, color, key);
  }
  std::unique_ptr<Transport> with_hosts(const std::vector<int>& hosts) override {
    world_->check();
    return world_->split(rank_, next_split_++, 0, rank_, hosts);
  }

  WireCounters counters() const override { return counters_.read(); }
  std::vector<double> bytes_to_peers() const override { return counters_.bytes_to_peers(); }
  CardRates card_rates() const override { return counters_.card_rates(); }
  void restart_card_rates() override { counters_.restart_card_rates(); }

  [[noreturn]] void abort(int exit_code) override {
    const std::string why = fmt::format("rank {} ended the world with exit code {}", rank_, exit_code);
    world_->end(why);
    throw EnvironmentError(why);
  }

 private:
  void check_peer(int peer) const { ECHELON_CHECK(peer >= 0 && peer < size(), "peer {} of {} ranks", peer, size()); }

  // For each rank its own number; -1 if it is on another host.
  std::vector<int> on_this_host() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank) {
      const auto host = [&](int of) { return hosts()[static_cast<std::size_t>(of)]; };
      ranks.push_back(host(rank) == host(rank_) ? rank : -1);
    }
    return ranks;
  }

  std::pair<Request, LocalOp*> begin() {
    world_->check();
    if (free_.empty()) {
      ops_.emplace_back();
      free_.reserve(ops_.size());
      free_.push_back(static_cast<std::int64_t>(ops_.size()) - 1);
    }
    const std::int64_t id = free_.back();
    free_.pop_back();
    LocalOp& op = ops_[static_cast<std::size_t>(id)];
    op.sending = op.library = false;
    op.owner = rank_;
    op.state.store(OpState::pending, std::memory_order_relaxed);
    return {Request{id}, &op};
  }

  void release(Request& request, LocalOp& op) {
    op.state.store(OpState::free, std::memory_order_relaxed);
    free_.push_back(request.id);
    request.id = -1;
  }

  std::shared_ptr<LocalWorld> world_;
  int rank_;
  std::deque<LocalOp> ops_;  // addresses must not change
  std::vector<std::int64_t> free_;
  std::map<int, std::unique_ptr<SharedChannel>> channels_;  // by tag
  std::int64_t next_reduce_ = 0, next_split_ = 0, next_share_ = 0;
  MessageCounters counters_{world_->ranks()};
};

}  // namespace

std::shared_ptr<LocalWorld> new_local_world(int ranks, const std::vector<int>& hosts) {
  return std::make_shared<LocalWorld>(ranks, hosts, std::make_shared<WorldEnd>());
}

std::unique_ptr<Transport> local_transport(std::shared_ptr<LocalWorld> world, int rank) {
  return std::make_unique<LocalTransport>(std::move(world), rank);
}

void end_local_world(LocalWorld& world, const std::string& why) { world.end(why); }

std::vector<std::unique_ptr<Transport>> make_local_world(int ranks, const std::vector<int>& hosts) {
  const auto world = new_local_world(ranks, hosts);
  std::vector<std::unique_ptr<Transport>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(local_transport(world, rank));
  return all;
}

}  // namespace echelon::inline comm
