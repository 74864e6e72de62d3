// One rank's part of synchronous training with backup workers, as a state machine (comm/protocol/machine.hpp). Workers
// are the first ranks; any rank may serve, workers too. Each bucket is cut into parts, one a server (a piece). The
// first rank that serves coordinates: it decides by rounds.hpp which gradients enter a step, for all pieces alike.
//
//   host of a worker posts push(b)    its gradient of bucket b goes to the servers of b, while back-propagation goes on
//   host of a worker posts complete   after set_complete, once in a step, before or after its last push: from now on
//                                     weights may arrive. Once all its pushes have left, the coordinator is told
//   tells                  verdict    entered, or dropped; and the step that the worker takes next
//   tells                  pulled(b)  the weights of bucket b are here, of the step of the verdict; before or after it
//   any host posts         quiet      this worker has the weights of its next step, to which all workers come
//   tells                  quiet      all workers have weights of that step from here, and nothing that belongs to the
//                                     steps before is on its way from or to this rank, whose server takes no step
//   any host posts         resume     until then; others may come to this long before
//   any host posts         end        no step follows that one, nowhere
//
// A server follows the coordinator's commands in order: of a closed step, once the pushes of those that enter it are in
// a piece, memory takes the step and the weights go to the workers that entered; a worker that joins gets the weights
// as they are then. So all pieces take the same gradients, and all that a late worker gets is of one step.
//
// Nobody waits for a replica that stands still: of one worker and piece one push lies at the server, one send of
// weights is on its way to one worker from one server at a time, and commands for it do not depend on it. A replica
// that serves must run: its server's work is done by the thread that drives, whatever its compute does.
//
// Messages a step: of each worker that takes it 1 + 1 to and from the coordinator, 2 a piece; of the coordinator to
// each other server 1 a closed step and 1 a worker that joins. None between a worker and a server on its own rank.
//
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

// Gradients and weights of bucket b.
class BackupMemory {
 public:
  struct Bytes {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  using Message = std::shared_ptr<std::vector<std::byte>>;

  virtual ~BackupMemory() = default;

  // At a worker: its gradient for that server, valid until `complete` has left; where that server's weights arrive.
  virtual Bytes push(int b, int server) = 0;
  virtual Bytes weights_room(int b, int server) = 0;

  // At a server, of its own piece of b. Not asked for the worker on this rank, whose gradient lies there already.
  virtual Bytes push_room(int b, int worker) = 0;
  // The step of the optimiser on the sum of the gradients of command.entered, times command.factor.
  virtual void take_step(int b, const BackupCommand& command) = 0;
  // The weights as they are now, unchanged for as long as anybody holds them.
  virtual Message weights(int b) = 0;
  // The weights as they are now, for the worker on this rank.
  virtual void take_own(int b) = 0;
};

struct BackupBucket {
  Parts parts;       // by rank; empty for those that do not serve it
  int tag = 0;       // to servers; weights have tag + 1
  int priority = 0;  // of its messages
};

class BackupProtocol final : public Machine, private BackupRounds::Owner {
 public:
  enum class Word : std::uint8_t { push, complete, quiet, resume, end, verdict, pulled };
  // Of push and pulled; the others are of no bucket.
  static Token token(Word word, int bucket = 0) { return static_cast<Token>(bucket) * 8 + static_cast<Token>(word); }
  static Word word_of(Token token) { return static_cast<Word>(token % 8); }
  static int bucket_of(Token token) { return static_cast<int>(token / 8); }

  struct Setup {  // the same on all ranks but for `rank`
    int rank = 0;
    int workers = 1, needed = 1;
    std::int64_t first_step = 0;
    std::vector<BackupBucket> buckets;
    int tag = 0;  // this one and the next two: of completes, verdicts and commands
  };
  // `memory` outlives the machine.
  BackupProtocol(Setup setup, BackupMemory& memory);
  ~BackupProtocol() override;

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // The worker's host, before it posts `complete`; not before the verdict on the one before.
  void set_complete(const BackupComplete& complete) { own_complete_ = complete; }

  // The host of a rank that serves alone, before it posts `quiet`: the step to which all workers come.
  void set_step(std::int64_t step) { verdict_.next_step = step; }

  // What follows is for the host, inside `on_notified`.
  const BackupVerdict& verdict() const { return verdict_; }  // the newest
  double completed_s() const { return completed_s_; }        // when the host last posted `complete`
  WireCounters take_sent();                                  // since it was last asked
  // At the coordinator, by worker; empty elsewhere.
  std::vector<BackupRounds::Count> counts() const;

  // Bytes of a command.
  static std::size_t command_bytes(int workers) {
    return sizeof(WireCommand) + set_words(workers) * sizeof(std::uint64_t);
  }

 private:
  struct WireCommand {  // then the set of those that entered, 64 workers a word
    std::int64_t step = 0, joins = -1;
    double factor = 1, learning_rate = 0;
  };
  struct Link {  // of a worker to a server of a bucket
    int server = 0;
    bool expected = false, waiting = false;  // its weights
    std::size_t bytes = 0;                   // likewise
  };
  struct Bucket {
    int tag = 0, priority = 0;
    std::vector<Link> links;           // the own piece last
    std::optional<BackupPiece> piece;  // of this rank
    std::size_t push_bytes = 0;        // of a gradient of the piece
    std::int64_t to_take = 0;          // parts of the weights
    bool pushed = false;
  };
  struct Outgoing {  // weights to a worker
    int bucket = 0;
    std::int64_t step = 0;
    BackupMemory::Message message;
  };
  enum class Use : std::uint8_t { push, weights, complete, verdict, command };
  struct Key {
    Use use;
    int bucket;  // of a small message its number
    int peer;    // push sent, weights received: index in links; else a rank
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
  std::size_t length_of(const Key& key);  // of what is received

  void push(int b);
  void begin_completing();
  void look_if_completed();
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

  void look_if_quiet();
  void send(const Key& key, int to, int tag, const void* data, std::size_t bytes, int priority);
  void send_small(Use use, int to, int tag, std::int64_t step, std::vector<std::byte> message);

  Setup setup_;
  BackupMemory& memory_;
  std::vector<Bucket> buckets_;
  std::vector<int> servers_;                  // ranks; the first coordinates
  std::unique_ptr<BackupRounds> rounds_;      // of the coordinator
  std::vector<BackupComplete> completes_;     // of the coordinator: by worker, the one that arrives
  std::deque<BackupCommand> commands_;        // of a server: not followed to the end yet
  bool held_ = false;                         // from quiet to resume: none is followed
  std::vector<std::byte> next_command_;       // of a server: arrives
  std::vector<std::deque<Outgoing>> outbox_;  // of a server, by worker: the first is on its way
  ProtocolActions* actions_ = nullptr;        // of the event that is handled
  double now_s_ = 0, completed_s_ = 0;
  BackupComplete own_complete_;
  BackupVerdict verdict_, next_verdict_;
  std::int64_t pushes_posted_ = 0, pushes_unsent_ = 0;
  bool completing_ = false, judged_ = true;  // complete was posted and waits for pushes; a verdict has come
  std::int64_t quiet_before_ = -1;           // the step of a post of `quiet` that is not answered yet; -1: none
  struct Small {
    std::int64_t step = 0;  // that it belongs to, or leads to
    std::vector<std::byte> bytes;
  };
  std::map<int, Small> small_;  // messages on their way, by number
  int small_number_ = 0;
  WireCounters sent_;
};

}  // namespace echelon::inline exchange
