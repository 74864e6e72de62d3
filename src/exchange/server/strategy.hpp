// What every rank of a synchronous parameter server does: buckets, their traffic, and the server's step on the parts
// that this rank serves. worker.cpp trains beside it; dedicated.cpp serves alone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "exchange/buckets.hpp"
#include "exchange/server/codec.hpp"
#include "exchange/server/gather.hpp"
#include "exchange/server/memory.hpp"
#include "exchange/server/protocol.hpp"
#include "exchange/staging.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class ServerStrategy : public Strategy, private ProtocolHost {
 public:
  // Throws ConfigError for rules that look at whole parameters, and where codec, dtype or ranks do not fit.
  ServerStrategy(const ExchangeConfig& config, const StrategyContext& context);

  void drain() override;
  void gather_state() override;
  // What is not drained yet is no state.
  void visit_state(StateVisitor& visitor) override { codec_->visit_state(visitor); }
  WireCounters wire() const override { return account_.wire(); }
  double formula_bytes_per_step() const override { return formula_bytes_; }
  std::string describe() const override;

 protected:
  enum class Stage : std::uint8_t { idle, pushed, pulled };
  struct Bucket {
    ArenaRange range;
    ArenaRange own;                      // what this rank serves of it
    std::shared_ptr<const Plan> gather;  // of what each server has of it, to all ranks
    ReadyCount gradient;
    Stage stage = Stage::idle;
    Promise promise = {};
    Ticket ticket = {};
  };

  bool alone() const { return context_.engine.size() == 1; }
  std::vector<Bucket>& buckets() { return buckets_; }  // from the arena's end
  StepAccount& account() { return account_; }
  Staging& gradients() { return gradients_; }
  Staging& weights() { return weights_; }

  // Hands this rank's gradient of bucket b to the servers, once `after` has passed.
  void push(std::size_t b);
  // Takes the optimiser's step on this rank's part of bucket b, once all workers' gradients are in, and sends it out;
  // where the optimiser waits for all gradients, of all buckets, every one of which is pushed.
  void serve(std::size_t b);
  // The same for every bucket whose gradients are in; none where the optimiser waits.
  void serve_what_is_in();
  // Likewise of all buckets where the optimiser waits for every gradient; nothing elsewhere.
  void serve_where_all_wait();
  // Returns once the new weights of bucket b are here.
  void finish(std::size_t b);
  void finish_all();
  // Of what arrived since the last one.
  StepOutcome take_outcome();

  // When this rank's own gradient of the range can be sent; null: at once, or there is none.
  virtual std::shared_ptr<const Event> own_gradient(ArenaRange range) = 0;
  // What came of bucket b, on the host, goes to where the next forward reads it.
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
  std::optional<Group> norms_;  // sums of the optimiser over the parts of servers; none with one rank
  bool states_apart_ = false;   // servers have moved their states since they were brought together
  double formula_bytes_ = 0;
  std::optional<ServerBuffers> memory_;
  std::optional<ServerProtocol> protocol_;
  std::mutex mutex_;                        // of the promises and the error
  std::exception_ptr error_;                // that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // ends first; null with one rank
};

// A rank that serves alone (exchange.server.ranks), and one that trains, a server inside it or not.
std::unique_ptr<Strategy> make_dedicated_server(const ExchangeConfig& config, const StrategyContext& context);
std::unique_ptr<Strategy> make_server_worker(const ExchangeConfig& config, const StrategyContext& context);

}  // namespace echelon::inline exchange
