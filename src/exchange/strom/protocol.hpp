// The messages of decentralised exchange (strategy "strom") as a state machine (comm/protocol/machine.hpp): every
// replica's messages reach every other replica, bucket by bucket, each once and in the order in which they were made.
// Without a server.
//
//   all    a message goes to each of the others straight: one link deep
//   ring   it goes to the next rank, which forwards it: k - 1 links deep
//
// Either way k (k-1) messages for one message of each of k replicas.
//
// Rounds. Synchronous: a replica posts one message a round, and is told when those of all are there. Asynchronous: a
// replica posts when it likes, as long as it has a free slot; messages of the others arrive when they do, and nobody
// waits between meetings. A message in asynchronous rounds is acknowledged link by link, by an empty message, once the
// host of the receiving rank has taken it: so that at most kStromSlots messages of one origin are on a link or in a
// rank, however slow its host is. A host without a free slot keeps its update for a later message.
//
//   host: room = draft(b), at most so many bytes written there, post commit(b, bytes)
//   tells   freed(b)        asynchronous: a slot is free again, the message has been taken by the next ranks
//   tells   arrived(b, o)   newest(b, o) is the next message of rank o; its bytes stay until the host posts `taken`
//                           (or calls `take` inside on_notified), in the order of arrival of each origin
//   tells   gathered(b)     synchronous: the messages of this round are all here, and what is forwarded has left
//   host posts meet         asynchronous: it makes no message until it is met, and takes each one as soon as it arrives
//   tells   met             all have come, and all messages that were made before are here and taken by this host;
//                           what others make after the meeting arrives later
//   host posts done         quiet: nothing made or expected since the last round or meeting
//   tells   ended
//
// A meeting costs an empty message, the marker, where an update costs a message.
//
// Memory of a rank: kStromSlots (synchronous: 2) messages of the longest length for each origin and bucket. Memory is
// touched as far as messages are long.
//
// Threads: draft, commit and meet are the compute thread's, everything else the driving thread's.
//
// Watchdog: in synchronous rounds a rank waits for each message that is missing; in asynchronous ones it waits at
// meetings alone, for the markers and for what acknowledges its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "config/strategies/strom.hpp"

namespace echelon::inline exchange {

struct StromTraffic {
  bool asynchronous = false, ring = false;
  std::vector<std::size_t> rooms;  // by bucket: bytes of its longest message
  int first_tag = 0;               // of 2 * buckets * ranks tags
};

class StromProtocol final : public Machine {
 public:
  enum class Word : std::uint8_t { round, taken, meet, done, freed, arrived, gathered, met, ended };
  static Token token(Word word, int bucket = 0, int origin = 0) {
    return static_cast<Token>(origin) << 36 | static_cast<Token>(bucket) << 4 | static_cast<Token>(word);
  }
  static Word word_of(Token token) { return static_cast<Word>(token & 15); }
  static int bucket_of(Token token) { return static_cast<int>(token >> 4 & 0xffffffff); }
  static int origin_of(Token token) { return static_cast<int>(token >> 36); }

  // The same on all ranks but for `rank`. At least two ranks.
  StromProtocol(int rank, int ranks, StromTraffic traffic);
  ~StromProtocol() override;

  // Compute thread. Where the next message of bucket b is written; asynchronous: only with a free slot, of which there
  // are kStromSlots at the start and one more with each `freed`.
  std::byte* draft(int b);
  // What the host posts for a message of so many bytes there, at least 1; and for a meeting.
  Token commit(int b, std::size_t bytes);
  Token meet();

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // Inside on_notified.
  std::span<const std::byte> newest(int b, int origin) const;
  void take(int b, int origin);
  // What this rank has sent since the last call.
  WireCounters take_sent();

 private:
  struct Link {  // to a rank that gets this stream's messages from here
    int to = 0;
    std::int64_t next = 0;   // the first message that was not sent yet
    std::int64_t acked = 0;  // messages that it has acknowledged
  };
  // The messages of one origin in one bucket, numbered from 0; number m lies in slot m % slots.
  struct Stream {
    int bucket = 0, origin = 0, from = 0;  // `from`: who sends them here
    std::unique_ptr<std::byte[]> slots;
    std::vector<std::size_t> bytes;  // by slot
    std::vector<char> here;          // by slot: came before one that was sent earlier
    std::vector<int> sends;          // by slot: of it, under way
    std::int64_t ready = 0;          // that are here; own: that were made
    std::int64_t delivered = 0;      // that the host was told of, markers included
    std::int64_t taken = 0;          // by the host
    std::int64_t released = 0;       // whose slots are free again
    bool marker = false;             // the newest one delivered is a marker, and its meeting is not over
    bool marker_due = false;         // own: not made yet, for want of a slot
    std::vector<Link> links;
  };
  enum class Use : std::uint8_t { message, ack, marker_ack };
  struct Key {
    Use use;
    std::size_t stream, link;
    std::int64_t number;  // modulo 2^16
  };
  static Token pack(const Key& key);
  static Key unpack(Token token);

  std::size_t index(int b, int origin) const {
    return static_cast<std::size_t>(b) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(origin);
  }
  bool own(const Stream& s) const { return s.origin == rank_; }
  std::size_t slot(std::int64_t number) const { return static_cast<std::size_t>(number % slots_); }
  std::byte* room(const Stream& s, std::int64_t number) const {
    return s.slots.get() + slot(number) * traffic_.rooms[static_cast<std::size_t>(s.bucket)];
  }
  int tag(std::size_t stream) const { return traffic_.first_tag + 2 * static_cast<int>(stream); }

  void start();
  void posted(Token token);
  void received(const ProtocolEvent& event);
  void make(std::size_t i, std::size_t bytes);
  void make_marker(std::size_t i);
  void post_receive(std::size_t i, std::int64_t number);
  void post_ack_receive(std::size_t i, std::size_t link);
  void forward(std::size_t i);
  void deliver(std::size_t i);
  void absorb(std::size_t i);
  void release(std::size_t i);
  void wait_for_missing(std::size_t i);
  void wait_for(const Key& key, int peer, int tag, std::int64_t step);
  void wait_over(const Key& key);
  void look_if_gathered(int b);
  void look_if_met();
  void look_if_ended();
  void send(const Key& key, int to, int tag, const void* data, std::size_t bytes);

  int rank_, ranks_;
  StromTraffic traffic_;
  std::int64_t slots_;
  std::vector<Stream> streams_;             // by bucket, then origin
  std::vector<std::int64_t> drafted_;       // by bucket: messages and markers of the compute thread
  std::vector<std::size_t> drafted_bytes_;  // by bucket and slot
  std::vector<char> gathering_;             // by bucket: a round is open
  ProtocolActions* actions_ = nullptr;      // of the event that is handled
  bool meeting_ = false, done_ = false;
  std::set<Token> waits_;
  std::int64_t acks_out_ = 0;
  std::byte nothing_{};  // where empty messages arrive
  WireCounters sent_;
};

}  // namespace echelon::inline exchange
