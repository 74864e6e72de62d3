// SPDX-License-Identifier: Apache-2.0
// The messages of the decentralised exchange (strategy "strom") as a state machine (comm/protocol/machine.hpp). There
// is no server: every message of a replica reaches every other replica, bucket by bucket, once and in the order in
// which they were made.
//
//   all    a message is sent to each other rank directly, over one link
//   ring   it is sent to the next rank, which forwards it, over k - 1 links
//
// Both take k (k-1) messages for one message of each of k replicas.
//
// Rounds. Synchronous: a replica posts one message per round and is notified when those of all ranks have arrived.
// Asynchronous: a replica posts whenever it has a free slot, messages of the others arrive at any time, and no rank
// waits between meetings. An asynchronous message is acknowledged on each link, by an empty message, once the host of
// the receiving rank has taken it. So at most kStromSlots messages of one origin are on a link or on a rank, however
// slow its host is. A host without a free slot keeps its update for a later message.
//
//   host: room = draft(b), write a message of at most rooms[b] bytes, post commit(b, bytes)
//   notifies freed(b)       asynchronous: a slot is free again, because the next ranks have taken a message
//   notifies arrived(b, o)  newest(b, o) is the next message of rank o; it stays valid until the host posts `taken` (or
//                           calls `take` inside on_notified), in the order of arrival of each origin
//   notifies gathered(b)    synchronous: all messages of this round have arrived, and this rank's sends are done
//   host posts meet         asynchronous: it makes no message until met, and takes each one as soon as it arrives
//   notifies met            all ranks have come, and this host has taken all messages that were made before; messages
//                           made after the meeting arrive later
//   host posts done         nothing was made or is expected since the last round or meeting
//   notifies ended
//
// A meeting costs one empty message, the marker, for each message that an update takes.
//
// Memory of a rank: kStromSlots (synchronous: 2) messages of the longest length for each origin and bucket. Only memory
// that messages use is touched.
//
// Threads: the compute thread calls draft, commit and meet; the driving thread calls everything else.
//
// Watchdog: in synchronous rounds a rank waits for each missing message; in asynchronous rounds it waits only at
// meetings, for the markers of others and for the acknowledgements of its own.
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
  std::vector<std::size_t> rooms;  // by bucket: length of its longest message
  int first_tag = 0;               // first of 2 * buckets * ranks tags
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

  // The arguments except `rank` are equal on all ranks, at least two.
  StromProtocol(int rank, int ranks, StromTraffic traffic);
  ~StromProtocol() override;

  // The buffer for the next message of bucket b. Compute thread. Asynchronous: requires a free slot, of which there are
  // kStromSlots at the start and one more after each `freed`.
  std::byte* draft(int b);
  // Return what the host must post for a message of this length, at least 1, and for a meeting. Compute thread.
  Token commit(int b, std::size_t bytes);
  Token meet();

  void on(const ProtocolEvent& event, ProtocolActions& actions) override;

  // For the host, inside on_notified.
  std::span<const std::byte> newest(int b, int origin) const;
  void take(int b, int origin);
  // The traffic that this rank sent since the last call.
  WireCounters take_sent();

 private:
  struct Link {  // to a rank that gets this stream's messages from this rank
    int to = 0;
    std::int64_t next = 0;   // number of the first message that is not sent yet
    std::int64_t acked = 0;  // number of messages that it has acknowledged
  };
  // The messages of one origin in one bucket, numbered from 0. Message m is in slot m % slots.
  struct Stream {
    int bucket = 0, origin = 0, from = 0;  // `from` is the rank that sends them here
    std::unique_ptr<std::byte[]> slots;
    std::vector<std::size_t> bytes;  // by slot
    std::vector<char> here;          // by slot: the message arrived before an earlier one
    std::vector<int> sends;          // by slot: number of its sends in flight
    std::int64_t ready = 0;          // number of messages that have arrived; own: that were made
    std::int64_t delivered = 0;      // number that the host was notified of, including markers
    std::int64_t taken = 0;          // number that the host has taken
    std::int64_t released = 0;       // number of messages whose slots are free again
    bool marker = false;             // the last delivered message is a marker, and its meeting is not over
    bool marker_due = false;         // own: waits for a free slot
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
  void check_if_gathered(int b);
  void check_if_met();
  void check_if_ended();
  void send(const Key& key, int to, int tag, const void* data, std::size_t bytes);

  int rank_, ranks_;
  StromTraffic traffic_;
  std::int64_t slots_;
  std::vector<Stream> streams_;             // by bucket, then origin
  std::vector<std::int64_t> drafted_;       // by bucket: number of messages and markers of the compute thread
  std::vector<std::size_t> drafted_bytes_;  // by bucket and slot
  std::vector<char> gathering_;             // by bucket: a round is open
  ProtocolActions* actions_ = nullptr;      // of the event that is being handled
  bool meeting_ = false, done_ = false;
  std::set<Token> waits_;
  std::int64_t acks_out_ = 0;
  std::byte nothing_{};  // empty messages are received here
  WireCounters sent_;
};

}  // namespace echelon::inline exchange
