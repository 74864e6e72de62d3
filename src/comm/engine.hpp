// SPDX-License-Identifier: Apache-2.0
// The communication engine of a rank: the only caller of its transport. Compute threads submit plans and get tickets.
//
// Who drives. One thread at a time makes the calls of the transport: the engine's own thread while compute threads
// compute, or the thread that waits for a ticket, which saves two context switches (a message of 256 bytes between two
// ranks of one host takes 67 us driven by the engine's thread, 2 us by the waiting thread).
//
// Channels. A channel is a small number, fixed when the run is built and equal on all ranks: there is one for each
// (group, bucket). It is the message tag, so messages of different channels are never confused, in whatever order ranks
// submit their plans. One plan at a time is live on a channel; a second one is queued behind it. All ranks must submit
// the same sequence of plans on a channel, or a wait never ends (the watchdog reports it).
//
// Priority. Live plans are interleaved step by step. Among the steps that could start now the one with the lowest
// `priority` goes first (0 is the layer that the next forward pass needs first), and while `sends` messages are in
// flight, further sends wait in that same order. Library collectives start strictly in the order of submission and
// refuse a priority, because starting two of them in different orders on two ranks gives wrong sums without an error.
//
// Failure. An exception of a transport or a plan ends every live job, and every job submitted later, with that error,
// which Ticket::wait rethrows, because peers are out of step by then. An error of a protocol's machine ends only that
// machine.
//
// Breaking off. `break_off` ends the jobs and machines of all groups with an error, so that the surviving ranks can go
// on after one is lost; another engine may then drive another part of the same transport (part_transport.hpp).
//
// Events. A job whose data comes from a device starts once `after` has passed.
//
// Waiting. `Ticket::wait` drives the engine until the ticket is done. The thread that drives yields its core after each
// pass without progress; after yield_s (patience_s in a waiting thread) it sleeps between passes, for a fiftieth of the
// time since the last progress (EngineOptions::nap_s), so that compute is not starved where ranks share cores.
//
// Watchdog. `waits()` reports which channel has been waiting for which peer, and since when. Any thread may call it; it
// makes no transport call, and its answer is at most about 5 ms old.
//
// Groups. `split` returns the engine of a subset of the ranks: one thread still makes all calls, channels of different
// groups never mix, and plans of all groups share priorities and the budget of sends.
//
// Protocols without a plan (servers, asynchronous, decentralised, backup workers) attach a state machine
// (protocol/machine.hpp). The thread that drives carries out its actions under the same budget of sends, after those of
// the plans, and `waits()` includes its waits.
//
// Cost. After a plan of some size has been run once on a channel, submitting another there allocates O(1) host memory.
// Each channel keeps scratch for its largest plan (scratch_bytes).
//
// All times are of the transport's clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "comm/collective/plan.hpp"
#include "comm/peer_times.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "device/device.hpp"

namespace echelon::inline base {
class SpanRecorder;
}

namespace echelon::inline comm {

class WireForm;

struct Job {
  std::shared_ptr<const Plan> plan;
  void* data = nullptr;  // host memory, valid until the ticket is done
  DType dtype = DType::f32;
  int channel = 0;
  int priority = 0;
  std::shared_ptr<const Event> after;        // null: starts at once
  std::shared_ptr<WireForm> form = nullptr;  // null: values are sent unencoded
};

class Ticket {
 public:
  Ticket() = default;
  bool valid() const { return state_ != nullptr; }
  bool done() const;
  // Blocks until the plan is done; rethrows the error that ended it. An invalid ticket counts as done. Any thread but
  // the engine's may call it; several threads may wait for one ticket.
  void wait() const;
  double started_s() const;   // when its first step could start, by the engine's clock; 0 before
  double finished_s() const;  // when it ended, by the engine's clock; 0 before
  WireCounters wire() const;  // messages that this rank has sent for it; zeros before it is done

  struct State;
  explicit Ticket(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

// Values of WaitView::peer for waits that are not for another rank.
inline constexpr int kMessageLibrary = -1;
inline constexpr int kDeviceLibrary = -2;  // a library that sums between devices (device/device_allreduce.hpp)

// One wait of the engine, as the watchdog reads it.
struct WaitView {
  int channel = 0;
  std::int64_t step = 0;       // index of the plan's step; for sums between devices the bucket
  int peer = kMessageLibrary;  // rank in the world, whatever the group, or one of the two values above
  bool sending = false;
  double since_s = 0;
};

// A ticket that a protocol's host completes instead of a plan, on the thread that drives. It completes once: a later
// `fail` is ignored.
class Promise {
 public:
  Promise() = default;
  Ticket ticket() const { return Ticket(state_); }
  bool pending() const;
  // `started_s` and `wire` are reported by the ticket; `now_s` is the time of the transport's clock.
  void fulfil(double started_s, double now_s, const WireCounters& wire);
  void fail(std::exception_ptr error, double now_s);

 private:
  friend class Engine;
  explicit Promise(std::shared_ptr<Ticket::State> state) : state_(std::move(state)) {}
  std::shared_ptr<Ticket::State> state_;
};

// A machine that is running on an engine. The destructor detaches the machine and cancels its messages; it waits for
// the end of the current pass, after which the machine and its host may be destroyed.
class Attachment {
 public:
  virtual ~Attachment() = default;
  // Any thread: the machine receives the event `posted` once `after` has passed.
  virtual void post(Token token, std::shared_ptr<const Event> after = nullptr) = 0;
};

struct EngineOptions {
  double yield_s = 200e-6;               // time without progress in which it yields after each pass, before it sleeps
  double patience_s = 2e-3;              // the same in a waiting thread, which has no other work
  double sleep_s = 50e-6;                // the shortest sleep
  double long_sleep_s = 500e-6;          // the longest, from 25 ms without progress on
  int window = 16;                       // steps of one plan that are looked at together, done or not
  int sends = 8;                         // messages in flight over all plans; further sends start in order of priority
  int helpers = 0;                       // threads that take over copies and sums of plans (comm/helper_threads.hpp)
  std::size_t helped_bytes = 128 << 10;  // smallest range that helpers take

  // Seconds of the next sleep after idle_s without progress.
  double nap_s(double idle_s) const { return std::clamp(idle_s / 50, sleep_s, long_sleep_s); }
};

class Engine {
 public:
  // Takes over the transport; starts the thread.
  explicit Engine(std::unique_ptr<Transport> transport, const EngineOptions& options = {});
  // Joins the thread without waiting for peers: live jobs end with an EnvironmentError in their tickets.
  ~Engine();
  Engine(const Engine&) = delete;

  int rank() const;
  int size() const;
  const Transport& transport() const;  // for rank, size, hosts and counters only

  // Returns the engine of the ranks that give the same colour, ordered by key, then rank. Collective over the ranks of
  // this engine, blocking. A check fails if a plan is in flight on this rank. Parts must be destroyed before the engine
  // that they were split from. Cost: a split of the transport and an all-gather of 4 bytes per rank.
  std::unique_ptr<Engine> split(int color, int key);
  // The same for a separate engine with its own thread and options; nothing may be submitted to this engine while the
  // other one exists (MPI_THREAD_SERIALIZED).
  std::unique_ptr<Transport> split_transport(int color, int key);

  // Memory that all ranks of this engine share (Transport::share); null if they cannot share memory. Collective,
  // blocking. A check fails if a plan is in flight.
  std::shared_ptr<SharedBlock> share(std::size_t bytes);

  // Replaces EngineOptions::sends and helpers from now on, for all groups. Any thread. A check fails if a plan is in
  // flight.
  void limit(int sends, int helpers);

  // Queues the job and returns at once; any thread. Throws ConfigError for a library collective with a priority or a
  // form, and for a plan on shared memory with a form. A check fails if plan or buffer are missing. Buffer, event and
  // form must stay valid until the ticket is done.
  Ticket submit(Job job);
  // Submits the job and waits for it; the calling thread drives. Throws the exceptions of submit and Ticket::wait.
  void run(Job job);
  // Runs a machine from the next pass on; any thread, returns at once. Machine and host must outlive the attachment,
  // and the engine must outlive both.
  std::unique_ptr<Attachment> attach(Machine& machine, ProtocolHost& host);
  Promise promise();
  // In the next pass every job and machine ends with this error; those submitted or attached later end at once. Only
  // the first call has an effect. Any thread may call it, also the host of a machine; returns at once. Messages in
  // flight are abandoned.
  void break_off(std::exception_ptr error);
  // From now on messages, codecs and sums of this rank, in all groups, are recorded by `recorder`; null stops
  // recording. The previous recorder is not used any more once this returns. Any thread.
  void record_spans(SpanRecorder* recorder);
  // Call after break_off: returns once this engine's thread has ended and none of its groups uses the transport any
  // more. Any thread but the engine's own.
  void settle();
  const Clock& clock() const { return transport().clock(); }

  std::vector<WaitView> waits() const;
  // Adds a wait outside the engine (for example on shared memory) to `waits()` until `end_wait` is called with the
  // returned number; `peer` is a rank of this engine. Any thread.
  std::uint64_t note_wait(WaitView wait);
  void end_wait(std::uint64_t noted);
  // The same for a wait that must be polled, such as that of a device for a sum: `waits()` calls `look`, on any thread;
  // `look` must not call this engine.
  std::uint64_t note_watch(std::function<std::optional<WaitView>()> look);
  WireCounters counters() const;
  // Host memory that this engine and all its groups keep for slots and coded messages of plans. Any thread.
  std::size_t scratch_bytes() const;
  void restart_card_rates();
  // When messages were sent and received, by rank of the world, over all groups, since the engine was made. Any thread.
  std::vector<PeerTime> peer_times() const;

 private:
  struct Body;
  struct Wire;
  class Attached;
  Engine(std::shared_ptr<Body> body, Wire& wire) : body_(std::move(body)), wire_(&wire) {}
  Ticket enqueue(Job job);

  std::shared_ptr<Body> body_;
  Wire* wire_ = nullptr;
  bool owner_ = false;  // whether its destructor ends the thread
};

}  // namespace echelon::inline comm
