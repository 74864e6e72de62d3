// SPDX-License-Identifier: Apache-2.0
// The internals of an engine: the work in flight, and the thread that drives it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/spans.hpp"
#include "comm/collective/executor.hpp"
#include "comm/engine.hpp"
#include "comm/helper_threads.hpp"
#include "comm/peer_times.hpp"
#include "comm/protocol/driver.hpp"
#include "comm/ticket.hpp"

namespace echelon::inline comm {

// The transport of a group of ranks, and the channels of its plans. Each channel has scratch of its own, so that the
// scratch of an engine is the sum over channels of what the largest plan of a channel needs, in whatever order the
// plans of several channels start.
struct Engine::Wire {
  struct Channel {
    bool taken = false;  // a live plan uses the channel
    bool seen = false;   // work space while `pending` is traversed
    Scratch scratch;
  };
  std::unique_ptr<Transport> transport;
  std::vector<int> world;  // the rank in the world of each rank of the group
  std::vector<Channel> channels;

  Channel& channel_of(const Job& job) {
    const auto index = static_cast<std::size_t>(job.channel);
    if (channels.size() <= index) channels.resize(index + 1);
    return channels[index];
  }
  int rank_in_world(int rank) const { return rank < 0 ? rank : world[static_cast<std::size_t>(rank)]; }
};

struct Engine::Body final : Driver {
  struct Queued {
    Job job;
    Wire* wire = nullptr;
    std::shared_ptr<Ticket::State> ticket;
  };
  struct Live {
    Queued queued;
    std::unique_ptr<Executor> executor;
  };
  struct Protocol {
    std::shared_ptr<ProtocolDriver> driver;
    Wire* wire;
  };

  Body(std::unique_ptr<Transport> transport, const EngineOptions& options);

  // For any thread.
  const EngineOptions options;
  const Clock& clock;
  PeerTimes peer_times;      // over all groups
  const bool shaped;         // the transport knows when messages come, so passes without a pause gain nothing
  mutable std::mutex mutex;  // guards the members below, up to the line
  std::condition_variable wake;
  std::vector<Queued> inbox;
  std::vector<Protocol> new_protocols;
  std::vector<WaitView> published;
  std::map<std::uint64_t, WaitView> noted;                                    // waits outside the engine (note_wait)
  std::map<std::uint64_t, std::function<std::optional<WaitView>()>> watched;  // waits that are polled (note_watch)
  std::uint64_t next_note = 0;
  std::exception_ptr end;             // the error that ends everything; null: none
  std::atomic<bool> news = false;     // inbox, a protocol's posts, new_protocols or end has changed
  std::atomic<bool> helped = false;   // a waiting thread drives, or is about to
  std::atomic<bool> working = false;  // something is live, pending or attached
  std::atomic<bool> stopped = false;  // everything has ended
  // When the current pass began; 0 between passes. A pass takes microseconds: one that does not end is stuck inside the
  // message library, and no waits are published from there.
  std::atomic<double> pass_begun_s = 0;
  std::thread thread;
  std::mutex driving;  // held by the thread that drives, during a pass
  // ----- for the thread that drives only
  std::deque<Wire> wires;       // the first one is of all ranks; elements never move
  std::vector<Queued> pending;  // in submission order
  std::vector<Live> live;       // by priority, then in submission order
  std::vector<Protocol> protocols;
  std::vector<std::unique_ptr<Executor>> idle_executors;
  std::unique_ptr<HelperThreads> helpers;  // null: none
  SendBudget budget;
  SpanRecorder* spans = nullptr;
  std::exception_ptr broken;
  bool shows_waits = false;
  double published_s = 0, moved_s = 0;
  double retired_s = 0;  // when a plan last ended

  void run();
  void limit(int sends, int helper_threads);
  void drive_until(const Ticket::State& done) override;
  bool pass();
  bool take_news();
  bool admit();
  bool may_start(const Queued& queued, bool library_ahead);
  void start(Queued queued);
  bool drive();
  bool drive_protocols();
  bool busy() const;
  double wakes_at_s() const;
  double now() const { return clock.now_s(); }
  void publish(double time_s);
  double pause_s(double idle_s, double yield_s) const;
  void relax(double pause_s);
  void stand_by();
  void fail_all(const std::exception_ptr& error, bool with_protocols = false);
  void detach(const ProtocolDriver& driver);
  void poke();
  void break_off(std::exception_ptr error);
  std::exception_ptr ended() const {
    const std::lock_guard lock(mutex);
    return end;
  }
  void retire(Live& done);
};

}  // namespace echelon::inline comm
