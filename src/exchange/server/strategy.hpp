// SPDX-License-Identifier: Apache-2.0
// The common part of all ranks of a synchronous parameter server: buckets, their traffic, and the server's step on the
// parts that this rank serves. worker.cpp trains in addition; dedicated.cpp only serves.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "exchange/buckets.hpp"
#include "exchange/server/buffers.hpp"
#include "exchange/server/codec.hpp"
#include "exchange/server/gather.hpp"
#include "exchange/server/protocol.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class ServerStrategy : public Strategy, private ProtocolHost {
 public:
  // Throws ConfigError if codec, dtype and ranks cannot be combined, or if there are more servers than ranks.
  ServerStrategy(const ExchangeConfig& config, const StrategyContext& context);

  void drain() override;
  void gather_state() override;
  // Requires drain: a bucket in flight is not part of the state.
  void visit_state(StateVisitor& visitor) override { codec_->visit_state(visitor); }
  WireCounters wire() const override { return account_.wire(); }
  double formula_bytes_per_step() const override { return formula_bytes_; }
  std::string describe() const override;

 protected:
  enum class Stage : std::uint8_t { idle, pushed, pulled };
  struct Bucket {
    ArenaRange range;
    ArenaRange own;                      // the part that this rank serves
    std::shared_ptr<const Plan> gather;  // sends every server's part to all ranks
    ReadyCount gradient;
    Stage stage = Stage::idle;
    Promise promise = {};
    Ticket ticket = {};
  };

  bool alone() const { return context_.engine.size() == 1; }
  std::vector<Bucket>& buckets() { return buckets_; }  // from the end of the arena on
  StepAccount& account() { return account_; }
  Staging& gradients() { return gradients_; }
  Staging& weights() { return weights_; }

  // Pushes this rank's gradient of bucket b to the servers, once it is ready (own_gradient).
  void push(std::size_t b);
  // Takes the optimiser's step on this rank's part of bucket b once the gradients of all workers have arrived, and
  // sends the new weights. If the optimiser waits for all gradients, it does this for all buckets, which must be
  // pushed.
  void serve(std::size_t b);
  // Serves every bucket whose gradients have arrived; nothing if the optimiser waits for all gradients.
  void serve_what_is_in();
  // Serves all buckets if the optimiser waits for all gradients; nothing otherwise.
  void serve_where_all_wait();
  // Blocks until the new weights of bucket b are here.
  void finish(std::size_t b);
  void finish_all();
  // The outcome since the last call.
  StepOutcome take_outcome();

  // The event after which this rank's own gradient of the range can be sent; null if it can be sent at once or this
  // rank has none.
  virtual std::shared_ptr<const Event> own_gradient(ArenaRange range) = 0;
  // Copies the weights received for bucket b from the host to where the next forward reads them.
  virtual void store_pulled(std::size_t b) = 0;

 private:
  void serve_parts();
  void take_sum(std::size_t b);
  void serve_together();
  int channel(std::size_t b) const { return context_.first_channel + 2 * static_cast<int>(b); }
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;
  void post(std::size_t b, ServerProtocol::Word word, std::shared_ptr<const Event> after);
  void pull(std::size_t b);
  void gather_served();

  AllreduceRequest request_;
  int workers_;
  StrategyContext context_;
  Staging gradients_, weights_;
  std::string coded_;  // for `describe`
  std::unique_ptr<ServerCodec> codec_;
  std::vector<Bucket> buckets_;
  StepAccount account_;
  std::optional<Group> norms_;  // for the optimiser's sums over the servers' parts; empty with one rank
  bool states_apart_ = false;   // servers have changed their states since the last gather
  double formula_bytes_ = 0;
  std::optional<ServerBuffers> memory_;
  std::optional<ServerProtocol> protocol_;
  std::mutex mutex_;                        // protects the promises and error_
  std::exception_ptr error_;                // the error that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // must be destroyed first; null with one rank
};

// A dedicated server (exchange.server.ranks), and a worker, with or without a server in it.
std::unique_ptr<Strategy> make_dedicated_server(const ExchangeConfig& config, const StrategyContext& context);
std::unique_ptr<Strategy> make_server_worker(const ExchangeConfig& config, const StrategyContext& context);

}  // namespace echelon::inline exchange
