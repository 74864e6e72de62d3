// SPDX-License-Identifier: Apache-2.0
// One rank of a synchronous parameter server as a state machine (comm/protocol/machine.hpp). It moves bytes and keeps
// their order; `ServerMemory` knows what the bytes are, and the host applies the optimiser.
//
// For each bucket, once per step:
//   host posts gradient(b)   a worker sends each server its part; a server receives its part from every worker
//   notifies   summed(b)     this rank's pushes are sent, and its own part is summed over the workers
//   host posts updated(b)    its own part of the weights is updated, and nobody here reads the old weights any more
//   notifies   settled(b)    all parts of the weights have arrived, and this rank's pulls are sent
//
// A part is sent in pieces. A server adds the pieces of a part in the order of the ranks (rank - 1), (rank - 2), ..
// modulo ranks, whatever the order of arrival, so that sums have the same bits on every schedule. Up to two pieces of
// each worker wait in memory for their turn.
//
// Messages of a bucket: 2 (workers other than the server) * pieces, summed over servers, as for the all-reduce `server`
// (configs/strategies/ALLREDUCE.md).
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective/halves.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"

namespace echelon::inline exchange {

// The buffers of messages. A message is of bucket b and of a piece, which is a range in elements of the bucket.
class ServerMemory {
 public:
  struct Bytes {
    void* data = nullptr;
    std::size_t bytes = 0;  // length of a message to send; capacity for a receive
  };
  static constexpr int kSlots = 2;  // receive buffers per worker

  virtual ~ServerMemory() = default;
  // The length of the longest message of bucket b in this step, in elements; equal on all ranks.
  virtual std::int64_t piece_elems(int b) const = 0;
  // The message of this worker to the server of the piece; valid until it is sent.
  virtual Bytes push(int b, int server, ElemRange piece) = 0;
  virtual Bytes push_room(int b, int worker, int slot, ElemRange piece) = 0;
  // Adds a received message to this server's sum; with `replaces` it is the first contribution and is copied.
  virtual void add(int b, int worker, int slot, ElemRange piece, std::size_t bytes, bool replaces) = 0;
  // The message of this server to every worker. Called once per piece and step; valid until it is sent to all.
  virtual Bytes pull(int b, ElemRange piece) = 0;
  virtual Bytes pull_room(int b, int server, ElemRange piece) = 0;
  virtual void take(int b, int server, ElemRange piece, std::size_t bytes) = 0;
};

struct ServerBucket {
  Parts parts;  // by rank; empty for ranks that do not serve
  int tag = 0;  // for pushes; pulls use tag + 1
  int priority = 0;
};

class ServerProtocol final : public Machine {
 public:
  enum class Word : std::uint8_t { gradient, updated, summed, settled };
  static Token token(Word word, int bucket) { return static_cast<Token>(bucket) * 4 + static_cast<Token>(word); }
  static Word word_of(Token token) { return static_cast<Word>(token % 4); }
  static int bucket_of(Token token) { return static_cast<int>(token / 4); }

  // The first `workers` ranks push and pull. `memory` must outlive the machine.
  ServerProtocol(int rank, int ranks, int workers, const std::vector<ServerBucket>& buckets, ServerMemory& memory);

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // The traffic that this rank sent for bucket b since the last call. Only inside the host's `on_notified`.
  WireCounters take_sent(int b);
  // Time of the host's last post for bucket b.
  double begun_s(int b) const { return buckets_[static_cast<std::size_t>(b)].begun_s; }

 private:
  struct Slot {
    bool taken = false, came = false;
    std::size_t bytes = 0;  // length of the received message
  };
  struct Pusher {  // at a server, a worker that pushes to it
    int rank = 0;
    std::int64_t asked = 0, added = 0;      // number of pieces whose receive is posted, and that are added to the sum
    Slot slots[ServerMemory::kSlots] = {};  // piece i uses slot i modulo kSlots
  };
  struct Bucket {
    Parts parts;
    std::int64_t piece_elems = 1;
    int tag = 0, priority = 0;
    bool open = false;               // from gradient to summed
    bool pulling = false;            // from updated to settled
    std::vector<Pusher> pushers;     // in the order in which their pieces are added
    std::vector<std::int64_t> next;  // by piece of the own part: index of the pusher that is added next
    std::int64_t to_add = 0, to_send = 0, to_take = 0;  // number of messages
    std::int64_t step = 0;
    double begun_s = 0;
    WireCounters sent;
  };
  // The use of a send or receive that a token encodes.
  enum class Use : std::uint8_t { pushed, pulled, push_came, pull_came };
  struct Key {
    Use use;
    int bucket;
    int peer;            // push_came: index in pushers; pull_came: rank of the server
    std::int64_t piece;  // index in the part
  };
  static Token pack(const Key& key);
  static Key unpack(Token token);

  bool works(int rank) const { return rank < workers_; }
  std::int64_t pieces(const Bucket& bucket, int rank) const;
  ElemRange piece(const Bucket& bucket, int rank, std::int64_t index) const;

  void begin_push(int b, double now_s, ProtocolActions& actions);
  void begin_pull(int b, double now_s, ProtocolActions& actions);
  void ask(int b, std::size_t p, ProtocolActions& actions);
  void push_came(const Key& key, std::size_t bytes, ProtocolActions& actions);
  void notify_if_reduced(int b, ProtocolActions& actions);
  void notify_if_settled(int b, ProtocolActions& actions);
  void send(int b, Use use, int to, const ServerMemory::Bytes& message, ProtocolActions& actions);

  int rank_, ranks_, workers_;
  ServerMemory& memory_;
  std::vector<Bucket> buckets_;
};

}  // namespace echelon::inline exchange
