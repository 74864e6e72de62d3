// SPDX-License-Identifier: Apache-2.0
// One rank of an asynchronous parameter server as a state machine (comm/protocol/machine.hpp). Workers are the first
// ranks; any rank may serve, including workers. Each bucket is cut into one part per server. A part is a piece, for
// which its server decides by piece.hpp how updates are applied and when workers are answered. No worker waits for
// another one, except when the bound holds an answer (rules.hpp) and at meetings.
//
//   host of a worker posts push(b)  the update of bucket b is sent to b's servers, layer by layer during
//                                   back-propagation; each server answers with the weights of its piece
//   notifies             settled(b) all pieces of b have new weights here, and the update may be overwritten
//   host of a worker posts meet     with every bucket settled: this worker comes to a meeting and pushes nothing until
//                                   met; the bound does not wait for it meanwhile
//   notifies             met        on every worker that is not done, and on every rank that serves a piece: all
//                                   workers have come or are done, those that came have the same weights, and nothing
//                                   is in flight here until a worker pushes again. (Workers do not wait for a server's
//                                   host, which may therefore be notified after their next pushes.)
//   host of a worker posts done     with every bucket settled: this worker never pushes again
//   notifies             recorded(b) take_ledger(b) has many bytes, which the host should take
//   notifies             ended      last: done was posted here, all workers are done with this server's pieces, and all
//                                   messages of this rank are sent
//
// A message is a header (AsyncHeader) and a payload, plain or coded, whose contents only AsyncMemory knows. A push and
// a meeting take 2 messages per piece and worker, done takes 1; none is sent between a worker and a server on its own
// rank. At most one message per piece and worker is in flight, so that a server needs one buffer for both directions.
//
// Threads: the thread that drives the machine makes all calls of AsyncMemory, and does nothing else meanwhile.
//
// Watchdog: a worker waits for each server that has not answered, even while that server holds the answer for the bound
// or a meeting. A server never waits.
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

// The beginning of every message, in the machine's byte order.
struct AsyncHeader {
  std::int64_t version = 0;  // to a server: of the worker's weights; in an answer: of the weights in it
  std::int64_t clock = 0;    // number of the worker's pushes of this piece, including this one; repeated in the answer
  double factor = 1;         // of the payload; carried for the strategy
  std::uint32_t flags = 0;   // carried for the strategy
  std::uint32_t kind = 0;    // AsyncKind; repeated in the answer
};
static_assert(sizeof(AsyncHeader) == 32, "a header has no padding");

// The messages and the arithmetic of bucket b. Buffers begin with room for an AsyncHeader, which the machine writes and
// reads; the payload follows.
class AsyncMemory {
 public:
  struct Room {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Message {
    std::byte* data = nullptr;
    std::size_t bytes = sizeof(AsyncHeader);  // length of header and payload
    double factor = 1;                        // goes to the header
    std::uint32_t flags = 0;                  // goes to the header
  };
  using Payload = std::span<const std::byte>;

  virtual ~AsyncMemory() = default;

  // On a worker: the message to this server, valid until b is settled.
  virtual Message push(int b, int server) = 0;
  // On a worker: the buffer for the answer, valid until `take`. Not called for a server on this rank, whose answer is
  // read where it was made.
  virtual Room answer_room(int b, int server) = 0;
  virtual void take(int b, int server, const AsyncHeader& header, Payload weights) = 0;

  // On a server, for its own piece of b: the buffer for a worker's message, which must keep it until the worker is
  // answered. The answer must stay valid until it is sent, and only then the next buffer is requested, so that both may
  // be the same memory.
  virtual Room push_room(int b, int worker) = 0;
  // Processes an update. With update.new_version, it and the updates added up before change the weights.
  virtual void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) = 0;
  // Applies what was added up, without another update.
  virtual void flush(int b) = 0;
  // The current weights as a message. `asked` is the header of the message that is answered.
  virtual Message answer(int b, int worker, const AsyncHeader& asked) = 0;
};

struct AsyncBucket {
  Parts parts;           // by rank; empty for ranks that do not serve it
  int tag = 0;           // for messages to servers; answers use tag + 1
  int priority = 0;      // of its messages
  LedgerBytes recorded;  // order in which this rank must process messages for its piece; empty: none
};

class AsyncProtocol final : public Machine {
 public:
  enum class Word : std::uint8_t { push, meet, done, settled, met, ended, recorded };
  // `bucket` only matters for push, settled and recorded.
  static Token token(Word word, int bucket = 0) { return static_cast<Token>(bucket) * 8 + static_cast<Token>(word); }
  static Word word_of(Token token) { return static_cast<Word>(token % 8); }
  static int bucket_of(Token token) { return static_cast<int>(token / 8); }

  // The first `workers` ranks train. Everything except `rank` and recorded orders is equal on all ranks. `memory` must
  // outlive the machine.
  AsyncProtocol(int rank, int workers, const AsyncRules& rules, std::vector<AsyncBucket> buckets, AsyncMemory& memory);
  ~AsyncProtocol() override;

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // The functions below are for the host, inside `on_notified`. This one returns the traffic that this rank sent for
  // bucket b since the last call.
  WireCounters take_sent(int b);
  // Time of the host's last post for b, on the transport's clock.
  double begun_s(int b) const;
  // This rank's own piece of b, or null.
  const AsyncPiece* piece(int b) const;
  // AsyncPiece::take_ledger of this rank's own piece of b; empty if there is none.
  LedgerBytes take_ledger(int b);
  // The tally of a worker's updates over this rank's pieces. O(buckets).
  StalenessTally staleness(int worker) const;
  // The newest version of any piece that this rank serves or has pulled. O(pieces).
  std::int64_t newest_version() const;

 private:
  class OwnPiece;
  struct Link {  // from a worker to a server of a bucket
    int server = 0;
    std::int64_t version = 0, pushes = 0;
    AsyncHeader control;        // header of a message without payload
    std::byte* room = nullptr;  // buffer for the next answer
  };
  struct Bucket {
    int tag = 0, priority = 0;
    std::vector<Link> links;
    std::unique_ptr<OwnPiece> own;
    bool out = false;                       // from a post to its last answer
    std::int64_t to_send = 0, to_take = 0;  // messages of this worker
    double begun_s = 0;
    WireCounters sent;
  };
  // The use of a send, receive or wait that a token encodes.
  enum class Use : std::uint8_t { push, answer };
  struct Key {
    Use use;
    int bucket;
    int peer;  // on a worker: index in links; on a server: the worker's rank
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
  void check_if_settled(int b);
  void check_if_met();
  void check_if_ended();
  void send(const Key& key, int to, int tag, AsyncMemory::Payload message);

  int rank_, workers_;
  AsyncMemory& memory_;
  std::vector<Bucket> buckets_;
  ProtocolActions* actions_ = nullptr;  // of the event that is being handled
  double now_s_ = 0;
  bool meeting_ = false, done_ = false;  // posted by this worker's host
  std::int64_t meetings_ = 0;            // number that the host was notified of
  std::int64_t closings_ = 0;            // own pieces whose answers at a meeting are being sent
  std::int64_t open_pieces_ = 0;         // own pieces for which some worker is not done
  std::int64_t unsent_ = 0;              // number of messages
};

}  // namespace echelon::inline exchange
