// One rank's part of an asynchronous parameter server, as a state machine (comm/protocol/machine.hpp). Workers are the
// first ranks; any rank may serve, workers too. Each bucket is cut into parts, one a server; a part is a piece, for
// which its server decides by piece.hpp what happens to updates and when workers are answered. Nobody waits for another
// worker, but where the bound holds answers (rules.hpp), and at meetings.
//
//   host of a worker posts push(b)  its update of bucket b goes to the servers of b, layer by layer while
//                                   back-propagation goes on; each answers with its piece's weights
//   tells                settled(b) all pieces of b have new weights here, and the update may be overwritten
//   host of a worker posts meet     every bucket settled: this worker comes to a meeting and pushes nothing until met;
//                                   the others are not held for it meanwhile
//   tells                met        on every worker that is not done and on every rank that serves a piece: all workers
//                                   have come or are done, those that came have the same weights, and this rank is
//                                   quiet until a worker pushes again
//                                   (where workers go on without waiting for a server's host, that host may be told
//                                   after their next pushes)
//   host of a worker posts done     every bucket settled: it never pushes again
//   tells                recorded(b) take_ledger(b) has so many bytes that they should be taken
//   tells                ended      last: done was posted here, all workers are done with this server's pieces, and all
//                                   messages of this rank are out
//
// A message is a header (AsyncHeader) and a payload that is AsyncMemory's business: plain, coded, of any length.
// Messages: of a push and of a meeting 2 a piece and worker, of the end 1; none between a worker and a server on its
// own rank. Of one piece and worker at most one message is on its way, so that a server has one buffer for both.
//
// Threads: all calls of AsyncMemory are made by the thread that drives the machine, which is busy meanwhile.
//
// Watchdog: a worker waits for each server that owes it an answer, also while that server holds it for the bound or a
// meeting; a server waits for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/halves.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "exchange/asynchronous/piece.hpp"

namespace echelon::inline exchange {

// The beginning of every message, in the byte order of the machine.
struct AsyncHeader {
  std::int64_t version = 0;  // to a server: of the weights that the worker has; an answer: of the weights in it
  std::int64_t clock = 0;    // updates that the worker has pushed of this piece, with this one; an answer repeats it
  double factor = 1;         // of the payload; the strategy's: this layer carries it
  std::uint32_t flags = 0;   // likewise
  std::uint32_t kind = 0;    // AsyncKind; an answer repeats it
};
static_assert(sizeof(AsyncHeader) == 32, "a header has no padding");

// The messages and the arithmetic, of bucket b. Buffers of messages begin with room for an AsyncHeader, which the
// machine writes and reads; the payload follows.
class AsyncMemory {
 public:
  struct Room {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Message {
    std::byte* data = nullptr;
    std::size_t bytes = sizeof(AsyncHeader);  // header and payload
    double factor = 1;                        // of the header
    std::uint32_t flags = 0;                  // likewise
  };
  using Payload = std::span<const std::byte>;

  virtual ~AsyncMemory() = default;

  // At a worker. What it sends to this server; valid until b is settled.
  virtual Message push(int b, int server) = 0;
  // Valid until `take`. Not asked for from a server on this rank, whose answer is taken from where it was made.
  virtual Room answer_room(int b, int server) = 0;
  virtual void take(int b, int server, const AsyncHeader& header, Payload weights) = 0;

  // At a server, of its own piece of b. The room stays until this worker is answered; the answer until `answered`, and
  // then the next room is asked for: they may be the same memory.
  virtual Room push_room(int b, int worker) = 0;
  // Takes in an update: weights change, by it and by what was added up before, where update.new_version.
  virtual void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) = 0;
  // What was added up changes the weights, without another update.
  virtual void flush(int b) = 0;
  // The weights as they are now. `asked`: the header of what is answered.
  virtual Message answer(int b, int worker, const AsyncHeader& asked) = 0;
};

struct AsyncBucket {
  Parts parts;           // by rank; empty for those that do not serve it
  int tag = 0;           // to servers; answers have tag + 1
  int priority = 0;      // of its messages
  LedgerBytes recorded;  // the order in which this rank is to take up what comes for its piece; empty: none
};

class AsyncProtocol final : public Machine {
 public:
  enum class Word : std::uint8_t { push, meet, done, settled, met, ended, recorded };
  // Of push, settled and recorded; the others are of no bucket.
  static Token token(Word word, int bucket = 0) { return static_cast<Token>(bucket) * 8 + static_cast<Token>(word); }
  static Word word_of(Token token) { return static_cast<Word>(token % 8); }
  static int bucket_of(Token token) { return static_cast<int>(token / 8); }

  // The first `workers` of the ranks train. The same on all ranks but for `rank` and what is recorded. `memory`
  // outlives the machine.
  AsyncProtocol(int rank, int workers, const AsyncRules& rules, std::vector<AsyncBucket> buckets, AsyncMemory& memory);
  ~AsyncProtocol() override;

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // What follows is for the host, inside `on_notified`.
  // What this rank has sent for bucket b since it was last asked.
  WireCounters take_sent(int b);
  // When the host's last post about b came, on the transport's clock.
  double begun_s(int b) const;
  // This rank's own piece of b; null where it has none.
  const AsyncPiece* piece(int b) const;
  // AsyncPiece::take_ledger of this rank's own piece of b; empty where it has none.
  LedgerBytes take_ledger(int b);
  // Staleness of the updates of a worker, over this rank's pieces. O(buckets).
  StalenessTally staleness(int worker) const;
  // The newest version of any piece that this rank has, of its own or as a worker that pulled it. O(pieces).
  std::int64_t newest_version() const;

 private:
  class OwnPiece;
  struct Link {  // of a worker to a server of a bucket
    int server = 0;
    std::int64_t version = 0, pushes = 0;
    AsyncHeader control;        // a message without payload
    std::byte* room = nullptr;  // where the next answer arrives
  };
  struct Bucket {
    int tag = 0, priority = 0;
    std::vector<Link> links;
    std::unique_ptr<OwnPiece> own;
    bool out = false;                       // between a post and its last answer
    std::int64_t to_send = 0, to_take = 0;  // of this worker
    double begun_s = 0;
    WireCounters sent;
  };
  // What a token of a send, a receive or a wait means.
  enum class Use : std::uint8_t { push, answer };
  struct Key {
    Use use;
    int bucket;
    int peer;  // to and from a server: index in links; to and from a worker: its rank
  };
  static Token pack(const Key& key);
  static Key unpack(Token token);

  Bucket& bucket(int b) { return buckets_[static_cast<std::size_t>(b)]; }
  bool works() const { return rank_ < workers_; }

  void begin(int b, AsyncKind kind);
  void send_to_server(int b, std::size_t link, AsyncKind kind);
  void message_came(int b, int worker, AsyncMemory::Payload message);
  void post_room(int b, int worker);
  void send_answer(int b, int worker, const AsyncHeader& header, const AsyncMemory::Message& message);
  void answer_came(int b, std::size_t link, AsyncMemory::Payload message);
  void look_if_settled(int b);
  void look_if_met();
  void look_if_ended();
  void send(const Key& key, int to, int tag, AsyncMemory::Payload message);

  int rank_, workers_;
  AsyncMemory& memory_;
  std::vector<Bucket> buckets_;
  ProtocolActions* actions_ = nullptr;  // of the event that is handled
  double now_s_ = 0;
  bool meeting_ = false, done_ = false;  // posted by the host of this worker
  std::int64_t meetings_ = 0;            // that the host was told of
  std::int64_t closings_ = 0;            // own pieces whose answers at a meeting are under way
  std::int64_t open_pieces_ = 0;         // own pieces that some worker is not done with
  std::int64_t unsent_ = 0;              // messages
};

}  // namespace echelon::inline exchange
