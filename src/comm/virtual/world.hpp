// SPDX-License-Identifier: Apache-2.0
// Ranks on virtual time: a transport whose messages take modelled times on a clock that jumps from event to event. All
// ranks run on the calling thread, so that one seed gives one schedule, bit for bit, whatever the machine does.
//
// The code that runs here is the code that runs on MPI: executors of plans (collective/executor.hpp) and drivers of
// protocols (protocol/driver.hpp), wrapped as actors. Uses: thousands of schedules of one protocol in seconds, and
// predicted times for more ranks than the machine has. Only the caller's thread is used; split, share and library calls
// are refused with ConfigError.
//
// The model of a message of B bytes (LogGP, Alexandrov et al. 1995, with one card per host):
//   leaves    once the sender's card is free, and occupies it for B / bandwidth + overhead
//   arrives   latency * (1 + jitter * e) later, with e exponential of mean 1; it occupies the receiver's card as long,
//             which may overlap; never before an earlier message between the same two ranks
//   B <= eager_bytes   the send is complete when it has left the card
//   larger             the transfer begins once the receive is posted (rendezvous), and completes both
// Ranks of one host use `inside_host` and no card.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

struct VirtualLink {
  double latency_s = 10e-6;
  double bytes_per_s = 1e9;
  double jitter = 0;      // mean of the exponential addition to latency_s, as a fraction of it
  double overhead_s = 0;  // time for which a message occupies each of the two cards, in addition to its bytes
};

struct VirtualNetwork {
  VirtualLink between_hosts = {};
  VirtualLink inside_host = {};
  std::vector<int> hosts = {};  // host index by rank; empty: each rank is a host
  std::size_t eager_bytes = 16 << 10;
  std::uint64_t seed = 1;  // for jitter, and for the order of ranks that could act at the same time
};

// The program of a rank. `pass` never blocks.
class VirtualActor {
 public:
  virtual ~VirtualActor() = default;
  virtual bool pass() = 0;  // true when there was progress; it is then called again at the same time
  virtual bool done() const = 0;
  // The earliest time at which it may act without a message, by its timers and its transport. Infinity by default.
  virtual double wakes_at_s() const;
};

class VirtualWorld {
 public:
  VirtualWorld(int ranks, VirtualNetwork network);
  ~VirtualWorld();
  VirtualWorld(const VirtualWorld&) = delete;

  int ranks() const { return static_cast<int>(states_.size()); }
  const Clock& clock() const { return clock_; }
  std::unique_ptr<Transport> transport(int rank);
  // For each rank the number of others that it has sent to or received from so far: connections on a real network.
  std::vector<int> peers_touched() const;

  // Runs until all actors are done (one per rank; null: the rank has nothing to do). EnvironmentError if no rank can
  // act any more (a deadlock), if virtual time passes `limit_s` (both name the ranks that are not done and the receives
  // that they wait for), and for a message longer than its receive. O(log events) per event.
  void run(const std::vector<VirtualActor*>& actors, double limit_s = 1e9);

 private:
  friend class VirtualTransport;
  class VirtualClock final : public Clock {
   public:
    double now_s() const override { return time_s; }
    double time_s = 0;
  };
  enum class OpState : std::uint8_t { free, pending, done };
  struct Op {
    OpState state = OpState::free;
    bool sending = false;
    int peer = -1, tag = 0;
    void* dst = nullptr;
    std::size_t bytes = 0;  // receive: room, afterwards the message's length
    std::int64_t message = -1;
    std::uint64_t use = 0;  // counts the uses of this entry
  };
  struct Message {
    int from = 0, to = 0, tag = 0;
    std::vector<std::byte> data;
    std::int64_t send_op = -1;
    std::uint64_t send_use = 0;
    bool rendezvous = false;
    std::int64_t receive_op = -1;  // rendezvous: set once it is matched
    std::uint64_t receive_use = 0;
  };
  struct RankState {
    std::vector<Op> ops;
    std::vector<std::int64_t> free;
    std::vector<std::int64_t> receives;    // ops, in the order posted
    std::vector<std::int64_t> unexpected;  // messages, in the order of arrival
    bool runnable = false;
    double armed_s = 0;  // time for which a wake-up is queued
    WireCounters counters;
  };
  enum class What : std::uint8_t { wake, leaves, sent, arrival, received };
  struct VirtualEvent {
    double at_s;
    std::uint64_t order;
    What what;
    int rank;
    std::int64_t id;  // index of the op or the message
    std::uint64_t use = 0;
    friend bool operator>(const VirtualEvent& a, const VirtualEvent& b) {
      return a.at_s != b.at_s ? a.at_s > b.at_s : a.order > b.order;
    }
  };

  RankState& state_of(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  int host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  Request new_op(int rank, bool sending, int peer, int tag, void* dst, std::size_t bytes);
  void release(int rank, Request& request);
  Request send(int rank, int peer, int tag, const void* data, std::size_t bytes);
  Request receive(int rank, int peer, int tag, void* data, std::size_t room);
  void cancel(int rank, Request& request);
  double wire_s(int from, int to, std::size_t bytes) const;
  // Returns the time at which a message that is sent now begins to leave the sender's card.
  double queue_at_card(int from, int to, std::size_t bytes);
  void leave(std::int64_t message);
  void match(int rank, std::int64_t op, std::int64_t message);
  void happen(const VirtualEvent& event);
  void at(double at_s, What what, int rank, std::int64_t id, std::uint64_t use = 0);
  void make_runnable(int rank);
  void run_ready(const std::vector<VirtualActor*>& actors);
  [[noreturn]] void stuck(const std::vector<VirtualActor*>& actors, const std::string& why) const;

  VirtualNetwork network_;
  std::vector<int> hosts_;
  std::vector<std::string> host_names_;
  VirtualClock clock_;
  std::vector<RankState> states_;
  std::map<std::int64_t, Message> messages_;
  std::int64_t next_message_ = 0;
  std::priority_queue<VirtualEvent, std::vector<VirtualEvent>, std::greater<>> queue_;
  std::uint64_t order_ = 0, draws_ = 0;
  std::vector<double> out_free_s_, in_free_s_;            // when each host's card is free
  std::map<std::pair<int, int>, double> last_arrival_s_;  // last arrival between two ranks
  std::vector<int> ready_;
};

}  // namespace echelon::inline comm
