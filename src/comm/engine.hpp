// The one place of a rank that talks to the transport. Compute threads hand it plans and get tickets.
//
// Who drives. One thread at a time makes the transport's calls: the engine's own while compute threads compute, or the
// thread that waits for a ticket, which has nothing else to do and saves two changes of thread (256 bytes between two
// ranks of one host: 67 us when handed over, 2 us when driven by the waiter).
//
// Channels. A channel is a small number fixed when the run is built and equal on all ranks: one for each (group,
// bucket). It is the message tag, so plans of different channels never mix up, in whatever order ranks submit them. At
// most one plan is live on a channel; submitting a second waits behind the first.
//
// Priority. Live plans are interleaved step by step; of steps that could start now the lower `priority` goes first (0
// is the layer that the next forward needs first), and while `sends` messages are on their way, further sends wait for
// room in that same order. Library collectives go out strictly in submission order on every rank and refuse a priority,
// because two of them in different orders give wrong sums silently.
//
// Failure. What a transport or a plan throws ends every live job, and every one submitted later, with that error: peers
// are out of step by then. A machine's error ends that machine.
//
// Events. A job whose data comes from a device starts once `after` has passed.
//
// Waiting. `Ticket::wait` drives the engine until the ticket is done and rethrows what went wrong. Whoever drives gives
// its core away after each look in which nothing moved, and soon sleeps between looks, the longer the longer nothing
// moved (a fiftieth of it), so that it does not starve compute where ranks share cores.
//
// Watchdog. `waits()` may be called from any thread and makes no transport call: which channel waits for which peer
// since when.
//
// Groups. `split` gives the engine of a part of the ranks: one thread still makes all calls, channels of different
// groups never meet, and plans of all groups share priorities and the budget of sends.
//
// Protocols without a plan (servers, asynchronous, decentralised, backup workers) attach a state machine
// (protocol/machine.hpp): whoever drives carries its actions out under the same budget of sends, after the plans' own,
// and its waits are in `waits()`.
//
// Time is the transport's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "device/device.hpp"

namespace echelon::inline comm {

class WireForm;

struct Job {
  std::shared_ptr<const Plan> plan;
  void* data = nullptr;  // host memory, valid until the ticket is done
  DType dtype = DType::f32;
  int channel = 0;
  int priority = 0;
  std::shared_ptr<const Event> after;        // none: starts at once
  std::shared_ptr<WireForm> form = nullptr;  // none: values travel as they are
};

class Ticket {
 public:
  Ticket() = default;
  bool valid() const { return state_ != nullptr; }
  bool done() const;
  // Returns once the plan is done; throws what ended it otherwise. A ticket that is not valid is done.
  void wait() const;
  double started_s() const;  // of the engine's clock; 0 before
  double finished_s() const;
  WireCounters wire() const;  // what this rank has sent for it; zeros before it is done

  struct State;
  explicit Ticket(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// One wait of the engine, as the watchdog reads it.
struct WaitView {
  int channel = 0;
  std::int64_t step = 0;  // of the plan
  int peer = -1;          // in the world of ranks, whatever the group; -1: the library
  bool sending = false;
  double since_s = 0;
};

// A ticket that somebody else than a plan completes, on the thread that drives: a protocol's host.
class Promise {
 public:
  Promise() = default;
  Ticket ticket() const { return Ticket(state_); }
  bool pending() const;
  // `started_s` and `wire` are what the ticket reports; `now_s` of the transport's clock.
  void fulfil(double started_s, double now_s, const WireCounters& wire);
  void fail(std::exception_ptr error, double now_s);

 private:
  friend class Engine;
  explicit Promise(std::shared_ptr<Ticket::State> state) : state_(std::move(state)) {}
  std::shared_ptr<Ticket::State> state_;
};

// A machine under way on an engine. Its end takes the machine off the engine, whatever is under way: then the machine
// and its host may go.
class Attachment {
 public:
  virtual ~Attachment() = default;
  // Any thread: the machine gets the event `posted` once `after` has passed.
  virtual void post(Token token, std::shared_ptr<const Event> after = nullptr) = 0;
};

struct EngineOptions {
  double yield_s = 200e-6;       // looks again and again, yielding, before it sleeps
  double patience_s = 2e-3;      // likewise where a waiting thread drives: it keeps no work from its core
  double sleep_s = 50e-6;        // the shortest sleep
  double long_sleep_s = 500e-6;  // the longest, after 25 ms without a move
  int window = 16;               // steps of one plan in flight
  int sends = 8;                 // messages on their way over all plans before lower priorities hold back

  // Of the next sleep, where nothing moved for idle_s.
  double nap_s(double idle_s) const { return std::clamp(idle_s / 50, sleep_s, long_sleep_s); }
};

class Engine {
 public:
  // Takes over the transport; starts the thread.
  explicit Engine(std::unique_ptr<Transport> transport, const EngineOptions& options = {});
  // Waits for nothing: live jobs end with an error in their tickets.
  ~Engine();
  Engine(const Engine&) = delete;

  int rank() const;
  int size() const;
  const Transport& transport() const;  // rank, size, hosts, counters only

  // Over the ranks that give the same colour, by key, then rank: collective, blocking, and nothing may be under way on
  // any of them. Parts end before the engine that they were split from does.
  std::unique_ptr<Engine> split(int color, int key);

  // Memory that all ranks of this engine see (Transport::share): collective, blocking, and nothing may be under way.
  std::shared_ptr<SharedBlock> share(std::size_t bytes);

  // Throws ConfigError for a library collective with a priority.
  Ticket submit(Job job);
  // Submits and waits, driven by the calling thread.
  void run(Job job);
  // Runs a machine from the next pass on. Machine and host outlive the attachment, the engine outlives both.
  std::unique_ptr<Attachment> attach(Machine& machine, ProtocolHost& host);
  Promise promise();
  const Clock& clock() const { return transport().clock(); }

  std::vector<WaitView> waits() const;
  // A wait beside the engine's, for the watchdog to see: `peer` is a rank here. Any thread; until `end_wait`.
  std::uint64_t note_wait(WaitView wait);
  void end_wait(std::uint64_t noted);
  WireCounters counters() const;

 private:
  struct Body;
  struct Wire;
  class Attached;
  Engine(std::shared_ptr<Body> body, Wire& wire) : body_(std::move(body)), wire_(&wire) {}
  Ticket enqueue(Job job);

  std::shared_ptr<Body> body_;
  Wire* wire_ = nullptr;
  bool owner_ = false;  // its end is the thread's
};

}  // namespace echelon::inline comm
