// SPDX-License-Identifier: Apache-2.0
// One rank of synchronous training with backup workers as a state machine (comm/protocol/machine.hpp). Workers are the
// first ranks; any rank may serve, including workers. Each bucket is cut into one part (piece) per server. The first
// rank that serves is the coordinator: it decides by rounds.hpp which gradients enter a step, the same ones for all
// pieces.
//
//   host of a worker posts push(b)    its gradient of bucket b is sent to b's servers, during back-propagation
//   host of a worker posts complete   after set_complete, once per step, before or after its last push: from now on
//                                     weights may arrive. When all its pushes are sent, the coordinator is informed
//   notifies               verdict    entered or dropped, and the step that the worker takes next
//   notifies               pulled(b)  the weights of bucket b for that step are here; before or after the verdict
//   any host posts         quiet      this worker has the weights of its next step, to which all workers come
//   notifies               quiet      all workers have this rank's weights of that step, no message of earlier steps is
//                                     in flight from or to this rank, and its server takes no step until resume; other
//                                     ranks may get this far much earlier
//   any host posts         resume     the server takes steps again
//   any host posts         end        no step follows on any rank
//
// A server carries out the coordinator's commands in order. For a closed step it waits until a piece has the pushes
// that enter it; then memory takes the step, and the new weights are sent to the workers that entered. A worker that
// joins gets the current weights. So all pieces use the same gradients, and a late worker gets weights of one step.
//
// No rank waits for a stopped replica: each piece keeps one push per worker, a server has one send of weights in flight
// per worker, and commands do not depend on it. A replica that serves must run: the driving thread does the server's
// work, even if the compute thread is delayed.
//
// Messages per step: 1 to and 1 from the coordinator for each worker that takes it, and 2 per piece; 1 from the
// coordinator to each other server per closed step and per joining worker. None between a worker and a server on its
// own rank.
//
// Threads: the thread that drives the machine makes all calls of BackupMemory.
// Threads: all calls of BackupMemory are made by the thread that drives the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/collective/halves.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "exchange/backup/piece.hpp"
#include "exchange/backup/rounds.hpp"

namespace echelon::inline exchange {

// Provides the gradients and weights of bucket b.
class BackupMemory {
 public:
  struct Bytes {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  using Message = std::shared_ptr<std::vector<std::byte>>;

  virtual ~BackupMemory() = default;

  // On a worker: its gradient for that server, valid until all pushes are sent; and the buffer for that server's
  // weights.
  virtual Bytes push(int b, int server) = 0;
  virtual Bytes weights_room(int b, int server) = 0;

  // On a server, for its own piece of b: the buffer for a worker's push. Not called for the worker on this rank, whose
  // gradient is already there.
  virtual Bytes push_room(int b, int worker) = 0;
  // Takes the optimiser's step with the sum of the gradients of command.entered, multiplied by command.factor.
  virtual void take_step(int b, const BackupCommand& command) = 0;
  // The current weights as a message, which must not change while anybody holds it.
  virtual Message weights(int b) = 0;
  // Copies the current weights for the worker on this rank.
  virtual void take_own(int b) = 0;
};

struct BackupBucket {
  Parts parts;       // by rank; empty for ranks that do not serve it
  int tag = 0;       // for messages to servers; weights use tag + 1
  int priority = 0;  // of its messages
};

class BackupProtocol final : public Machine, private BackupRounds::Owner {
 public:
  enum class Word : std::uint8_t { push, complete, quiet, resume, end, verdict, pulled };
  // `bucket` only matters for push and pulled.
  static Token token(Word word, int bucket = 0) { return static_cast<Token>(bucket) * 8 + static_cast<Token>(word); }
  static Word word_of(Token token) { return static_cast<Word>(token % 8); }
  static int bucket_of(Token token) { return static_cast<int>(token / 8); }

  struct Setup {  // equal on all ranks except for `rank`
    int rank = 0;
    int workers = 1, needed = 1;
    std::int64_t first_step = 0;
    std::vector<BackupBucket> buckets;
    int tag = 0;  // this tag and the next two: for completes, verdicts and commands
  };
  // `memory` must outlive the machine.
  BackupProtocol(Setup setup, BackupMemory& memory);
  ~BackupProtocol() override;

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // Called by the worker's host before it posts `complete`, but not before the verdict on its step before.
  void set_complete(const BackupComplete& complete) { own_complete_ = complete; }

  // Called by the host of a dedicated server before it posts `quiet`: the step to which all workers come.
  void set_step(std::int64_t step) { verdict_.next_step = step; }

  // The functions below are for the host, inside `on_notified`.
  const BackupVerdict& verdict() const { return verdict_; }  // the newest verdict
  double completed_s() const { return completed_s_; }        // time of the host's last `complete`
  WireCounters take_sent();                                  // since the last call
  // On the coordinator: the counts by worker; empty elsewhere.
  std::vector<BackupRounds::Count> counts() const;

  // The length of a command.
  static std::size_t command_bytes(int workers) {
    return sizeof(WireCommand) + set_words(workers) * sizeof(std::uint64_t);
  }

 private:
  struct WireCommand {  // followed by the set of entered workers, 64 workers per word
    std::int64_t step = 0, joins = -1;
    double factor = 1, learning_rate = 0;
  };
  struct Link {  // from a worker to a server of a bucket
    int server = 0;
    bool expected = false, waiting = false;  // for its weights
    std::size_t bytes = 0;                   // length of its weights
  };
  struct Bucket {
    int tag = 0, priority = 0;
    std::vector<Link> links;           // the own piece is last
    std::optional<BackupPiece> piece;  // of this rank
    std::size_t push_bytes = 0;        // length of a gradient of the piece
    std::int64_t to_take = 0;          // number of parts of the weights
    bool pushed = false;
  };
  struct Outgoing {  // weights for a worker
    int bucket = 0;
    std::int64_t step = 0;
    BackupMemory::Message message;
  };
  enum class Use : std::uint8_t { push, weights, complete, verdict, command };
  struct Key {
    Use use;
    int bucket;  // for a small message: its number
    int peer;    // for sent pushes and received weights: index in links; else a rank
  };
  static Token pack(const Key& key);
  static Key unpack(Token token);

  Bucket& bucket(int b) { return buckets_[static_cast<std::size_t>(b)]; }
  static std::size_t set_words(int workers) { return (static_cast<std::size_t>(workers) + 63) / 64; }
  bool works() const { return setup_.rank < setup_.workers; }

  void start();
  void posted(Token token);
  void sent(const Key& key);
  void received(const Key& key, std::size_t bytes);
  std::size_t length_of(const Key& key);  // of a received message

  void push(int b);
  void begin_completing();
  void check_if_completed();
  void verdict_came();
  void take(int b, std::size_t link);

  void decided(const BackupCommand& command) override;
  void decided(int worker, const BackupVerdict& verdict) override;

  void push_came(int b, int worker);
  void post_room(int b, int worker);
  void follow_commands();
  bool follow(const BackupCommand& command);
  void give_to_all(int b, std::vector<int> workers);
  void give(int b, int worker);
  void send_weights(int worker);
  std::vector<std::byte> encode(const BackupCommand& command) const;
  BackupCommand decode(const std::vector<std::byte>& message) const;

  void check_if_quiet();
  void send(const Key& key, int to, int tag, const void* data, std::size_t bytes, int priority);
  void send_small(Use use, int to, int tag, std::int64_t step, std::vector<std::byte> message);

  Setup setup_;
  BackupMemory& memory_;
  std::vector<Bucket> buckets_;
  std::vector<int> servers_;                  // ranks; the first is the coordinator
  std::unique_ptr<BackupRounds> rounds_;      // null except on the coordinator
  std::vector<BackupComplete> completes_;     // on the coordinator, by worker: buffer for the next one
  std::deque<BackupCommand> commands_;        // on a server: not completely carried out yet
  bool held_ = false;                         // from quiet to resume: no command is carried out
  std::vector<std::byte> next_command_;       // on a server: receive buffer
  std::vector<std::deque<Outgoing>> outbox_;  // on a server, by worker: the first is being sent
  ProtocolActions* actions_ = nullptr;        // of the event that is being handled
  double now_s_ = 0, completed_s_ = 0;
  BackupComplete own_complete_;
  BackupVerdict verdict_, next_verdict_;
  std::int64_t pushes_posted_ = 0, pushes_unsent_ = 0;
  bool completing_ = false, judged_ = true;  // complete is posted and waits for pushes; the verdict has arrived
  std::int64_t quiet_before_ = -1;           // the step of an unanswered post of `quiet`; -1: none
  struct Small {
    std::int64_t step = 0;  // the step that it belongs to or leads to
    std::vector<std::byte> bytes;
  };
  std::map<int, Small> small_;  // messages in flight, by number
  int small_number_ = 0;
  WireCounters sent_;
};

}  // namespace echelon::inline exchange
