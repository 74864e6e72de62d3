// SPDX-License-Identifier: Apache-2.0
// The common part of all ranks of an asynchronous parameter server: buckets, their traffic, meetings, and the parts
// that this rank serves. worker.cpp trains in addition; dedicated.cpp only serves.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "exchange/asynchronous/buffers.hpp"
#include "exchange/asynchronous/served.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/facets.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {

class AsyncStrategy : public Strategy,
                      public AsynchronousReplicas,
                      public Rescues,
                      public ServesUpdates,
                      private ProtocolHost {
 public:
  // Throws ConfigError if the servers have the optimiser's states and the rule needs whole parameters or gradients.
  AsyncStrategy(const ExchangeConfig& config, const StrategyContext& context, std::string_view name);

  Progress progress() const override { return {.meets = Progress::Meets::when_called}; }
  double divisor(const StepInfo& info) const override { return info.local_weight > 0 ? info.local_weight : 1; }
  void come_to_meeting() override;
  void drain() override;
  bool rescue(Group& living, const std::vector<int>& lost) override;
  void gather_state() override;
  void visit_state(StateVisitor& visitor) override;
  WireCounters wire() const override { return account_.wire(); }
  std::vector<StalenessTally> staleness() const override;
  std::int64_t pieces_served() const override;
  std::vector<LedgerBytes> take_ledgers() override;
  double formula_bytes_per_step() const override;
  std::string describe() const override;

 protected:
  struct Bucket {
    ArenaRange range;
    ArenaRange own;                      // the part that this rank serves
    std::shared_ptr<const Plan> gather;  // sends every server's part to all workers
    ReadyCount gradient;
    bool ready = false;  // its gradient is complete, but its update is not made yet
    Promise promise = {};
    Ticket ticket = {};  // valid: pushed, and its new weights are not in the arenas yet
  };

  const AsynchronousKeys& keys() const { return keys_; }
  const StrategyContext& context() const { return context_; }
  StepAccount& account() { return account_; }
  const StepInfo& info() const { return account_.info(); }  // of the current step
  std::vector<Bucket>& buckets() { return buckets_; }       // from the end of the arena on
  AsyncBuffers& memory() { return *memory_; }
  AsyncCodec* codec() { return codec_ ? &*codec_ : nullptr; }
  int workers() const { return workers_; }
  bool alone() const { return context_.engine.size() == 1; }
  bool at_servers() const { return keys_.states == AsyncStates::server && !alone(); }

  // Before the first message: copies weights and states, and starts the protocol. Does nothing afterwards.
  void attach();
  // Pushes bucket b, whose update is set.
  void push(std::size_t b);
  void count_step() { ++steps_; }
  // Blocks until all workers have come to the meeting that this rank has come to; returns at once if it is at none.
  void leave_meeting();
  // Calls `use` with host memory that holds the values of a range of an arena, valid during the call.
  template <class Use>
  void with_host(const void* arena, ArenaRange range, const Use& use) const;

  // Called when this rank comes to a meeting, and when it leaves it; all then have the same weights.
  virtual void begin_meeting() = 0;
  virtual void end_meeting() = 0;

  // Copy to the weights on the device: values of a range in host memory, and what this rank serves of bucket b.
  void take_over(ArenaRange range, const void* values);
  void take_over_served(std::size_t b);
  void post(Token token) { attachment_->post(token); }

 private:
  AsyncServed* served() { return served_ ? &*served_ : nullptr; }
  std::unique_ptr<Device> server_device() const;
  void count_bytes(int b, const Parts& parts, const AllreduceRequest& request);
  void begin_serving();
  void keep_ledger(int b);
  // Gathers the servers' parts of an arena in host memory on all workers.
  void gather(void* arena);
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  std::string_view name_;
  std::string coded_;  // for `describe`
  AsynchronousKeys keys_;
  std::optional<std::int64_t> bound_;
  StrategyContext context_;
  int workers_ = 1, servers_ = 1;
  bool dedicated_ = false;
  StepAccount account_;
  ArenaPass pass_;
  std::vector<Bucket> buckets_;
  double bytes_of_step_ = 0, bytes_of_meeting_ = 0;
  std::int64_t steps_ = 0, meetings_ = 0;  // of this rank
  double updates_before_ = 0;              // updates of the servers' optimiser before this attempt; in checkpoints
  std::vector<std::byte> mean_square_;     // a whole arena, gathered from the servers; empty unless lambda adapts
  std::optional<AsyncCodec> codec_;        // empty without a codec
  std::optional<AsyncServed> served_;      // empty if this rank does not serve
  std::optional<AsyncBuffers> memory_;
  std::optional<AsyncProtocol> protocol_;
  mutable std::mutex mutex_;  // protects the members below except `attachment_` and `meeting_`
  Promise meet_;
  std::int64_t told_ = 0;  // number of meetings that the protocol has notified of
  WireCounters sent_at_meeting_;
  std::vector<StalenessTally> staleness_;   // by worker, up to the last meeting
  std::int64_t newest_version_ = 0;         // up to the last meeting
  std::vector<LedgerBytes> ledgers_;        // by bucket: entries that are not taken yet
  std::exception_ptr error_;                // the error that ended the protocol
  Ticket meeting_;                          // valid: this rank has come to a meeting and has not left it
  std::unique_ptr<Attachment> attachment_;  // must be destroyed first; null with one rank, and before the first step
};

template <class Use>
void AsyncStrategy::with_host(const void* arena, ArenaRange range, const Use& use) const {
  Device& device = context_.arenas.device();
  const std::size_t elem = size_of(context_.arenas.dtype());
  const std::byte* from = static_cast<const std::byte*>(arena) + static_cast<std::size_t>(range.begin) * elem;
  if (device.on_host()) {
    device.synchronize();
    return use(static_cast<const void*>(from));
  }
  std::vector<std::byte> host(static_cast<std::size_t>(range.elems()) * elem);
  device.to_host(host.data(), from, host.size());
  use(static_cast<const void*>(host.data()));
}

// A worker, with or without a server in it, and a dedicated server (exchange.server.ranks).
std::unique_ptr<Strategy> make_async_worker(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name);
std::unique_ptr<Strategy> make_async_server(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name);

}  // namespace echelon::inline exchange
