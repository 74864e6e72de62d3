// What every rank of an asynchronous parameter server does: buckets, their traffic, meetings, and what the parts that
// this rank serves are. worker.cpp trains beside it; dedicated.cpp serves alone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "exchange/asynchronous/memory.hpp"
#include "exchange/asynchronous/served.hpp"
#include "exchange/averaging/arena_pass.hpp"
#include "exchange/facets.hpp"
#include "exchange/step_account.hpp"

namespace echelon::inline exchange {

class AsyncStrategy : public Strategy, public MeetsOnCall, public Rescues, public ServesUpdates, private ProtocolHost {
 public:
  // ConfigError for rules that look at whole parameters where servers have the optimiser's states.
  AsyncStrategy(const ExchangeConfig& config, const StrategyContext& context, std::string_view name);

  Progress progress() const override { return {.meets = Progress::Meets::on_call}; }
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
    ArenaRange own;                      // what this rank serves of it
    std::shared_ptr<const Plan> gather;  // of what each server has of it, to all workers
    ReadyCount gradient;
    bool ready = false;  // its gradient is there, its update is not made yet
    Promise promise = {};
    Ticket ticket = {};  // valid: pushed, and its new weights are not taken over yet
  };

  const AsynchronousKeys& keys() const { return keys_; }
  const StrategyContext& context() const { return context_; }
  StepAccount& account() { return account_; }
  const StepInfo& info() const { return account_.info(); }  // of the step under way
  std::vector<Bucket>& buckets() { return buckets_; }       // from the arena's end
  AsyncBuffers& memory() { return *memory_; }
  AsyncCodec* codec() { return codec_ ? &*codec_ : nullptr; }
  int workers() const { return workers_; }
  bool alone() const { return context_.engine.size() == 1; }
  bool at_servers() const { return keys_.states == AsyncStates::server && !alone(); }

  // Before the first message: takes over weights and states, and starts the protocol.
  void attach();
  // Pushes bucket b, whose update is set.
  void push(std::size_t b);
  void count_step() { ++steps_; }
  // Returns once all workers have come to the meeting that this rank has come to, if any.
  void leave_meeting();
  // Values of the arenas, of a range, on the host, for as long as `use` runs.
  template <class Use>
  void with_host(const void* arena, ArenaRange range, const Use& use) const;

  // What a rank of this role does when it comes to a meeting, and when it leaves it: all have the same weights then.
  virtual void begin_meeting() = 0;
  virtual void end_meeting() = 0;

  // To the device: values of a range, from host memory; and what this rank serves of bucket b.
  void take_over(ArenaRange range, const void* values);
  void take_over_served(std::size_t b);
  void post(Token token) { attachment_->post(token); }

 private:
  AsyncServed* served() { return served_ ? &*served_ : nullptr; }
  std::unique_ptr<Device> server_device() const;
  void count_bytes(int b, const Parts& parts, const AllreduceRequest& request);
  void begin_serving();
  void keep_ledger(int b);
  // Brings what every server has of an arena on the host to all workers.
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
  double updates_before_ = 0;              // of the servers' optimiser, before this attempt; in checkpoints
  std::vector<std::byte> mean_square_;     // of the whole arena: gathered from the servers; where lambda adapts
  std::optional<AsyncCodec> codec_;        // where exchange.codec is not "none"
  std::optional<AsyncServed> served_;      // where this rank serves
  std::optional<AsyncBuffers> memory_;
  std::optional<AsyncProtocol> protocol_;
  mutable std::mutex mutex_;  // of all below but `attachment_` and `meeting_`
  Promise meet_;
  std::int64_t told_ = 0;  // meetings that the protocol has told of
  WireCounters sent_at_meeting_;
  std::vector<StalenessTally> staleness_;   // by worker, up to the last meeting
  std::int64_t newest_version_ = 0;         // likewise
  std::vector<LedgerBytes> ledgers_;        // by bucket: not taken yet
  std::exception_ptr error_;                // that ended the protocol
  Ticket meeting_;                          // valid: this rank has come to a meeting, and has not left it
  std::unique_ptr<Attachment> attachment_;  // ends first; null with one rank, and before the first step
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

// A rank that trains, with a server inside it or not; and one that serves alone (exchange.server.ranks).
std::unique_ptr<Strategy> make_async_worker(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name);
std::unique_ptr<Strategy> make_async_server(const ExchangeConfig& config, const StrategyContext& context,
                                            std::string_view name);

}  // namespace echelon::inline exchange
