// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"
#include "base/error.hpp"
#include "comm/virtual/world.hpp"

namespace echelon::inline comm {

class VirtualTransport final : public Transport {
 public:
  VirtualTransport(VirtualWorld& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.ranks(); }
  std::string name() const override { return "virtual"; }
  const std::vector<int>& hosts() const override { return world_.hosts_; }
  const std::vector<std::string>& host_names() const override { return world_.host_names_; }
  const Clock& clock() const override { return world_.clock_; }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    check_peer(peer);
    return world_.send(rank_, peer, tag, data, bytes);
  }
  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    if (peer != kAnySource) check_peer(peer);
    return world_.receive(rank_, peer, tag, data, bytes);
  }
  std::optional<Completion> test(Request& request) override {
    const VirtualWorld::Op& op = world_.state_of(rank_).ops[static_cast<std::size_t>(request.id)];
    if (op.state != VirtualWorld::OpState::done) return std::nullopt;
    const Completion completion{op.peer, op.bytes};
    world_.release(rank_, request);
    return completion;
  }
  void cancel(Request& request) override { world_.cancel(rank_, request); }

  bool has_library_allreduce() const override { return false; }
  Request iallreduce(void*, std::size_t, DType) override {
    throw ConfigError("virtual time has no message library; use an algorithm of echelon's own");
  }
  std::unique_ptr<Transport> split(int, int) override {
    throw ConfigError("ranks on virtual time are not split: make a world of the ranks that take part");
  }
  WireCounters counters() const override { return world_.states_[static_cast<std::size_t>(rank_)].counters; }
  [[noreturn]] void abort(int exit_code) override {
    throw EnvironmentError("rank " + std::to_string(rank_) + " ended the world with exit code " +
                           std::to_string(exit_code));
  }

 private:
  void check_peer(int peer) const { ECHELON_CHECK(peer >= 0 && peer < size(), "peer {} of {} ranks", peer, size()); }

  VirtualWorld& world_;
  int rank_;
};

std::unique_ptr<Transport> VirtualWorld::transport(int rank) { return std::make_unique<VirtualTransport>(*this, rank); }

}  // namespace echelon::inline comm
