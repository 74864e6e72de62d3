// SPDX-License-Identifier: Apache-2.0
// Interface for protocols that no plan can describe: servers, asynchronous and stale-bounded updates, backup workers,
// decentralised exchange. Each rank runs a state machine
//
//   event (started | posted | sent | received | timer) -> actions (send, receive, arm, wait_for, notify_host, finish)
//
// that never blocks, owns no thread and reads no clock: the time is in the event. The same machine therefore runs on
// MPI, on ranks as threads, and on virtual time (comm/virtual/), where thousands of schedules take seconds and every
// one can be repeated from its seed.
//
// `driver.hpp` carries the actions out on a transport, under the engine's budget of sends; `Engine::attach` runs a
// driver beside the plans.
//
// Memory. Buffers of sends and receives belong to the machine, which must not change or free them before the event that
// reports their completion.
// Order. Messages of one (peer, tag) arrive in the order in which they were sent; therefore all sends of a tag must
// have the same priority. Receives of one (peer, tag) are matched in the order of their actions, but may complete in
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

namespace echelon::inline comm {

// Identifies a post, a message or a timer in events and actions. The machine and its host choose the numbers; sends,
// receives, timers and waits have separate spaces.
using Token = std::uint64_t;

struct ProtocolEvent {
  enum class Kind : std::uint8_t {
    started,   // once, before any other
    posted,    // the host (this rank's compute thread) reports something
    sent,      // a send is complete: its buffer may be used again
    received,  // a receive is complete
    timer,     // an armed time has come
  };
  Kind kind = Kind::started;
  Token token = 0;        // token of the post, send, receive or timer
  int peer = -1;          // received: the sender
  std::size_t bytes = 0;  // received: length of the message
  double now_s = 0;       // time of the transport's clock
};

// The actions of a machine while it handles an event; invalid after `on` has returned. All are queued: nothing here
// blocks or throws; errors of the transport are reported later through the host's `failed`.
class ProtocolActions {
 public:
  virtual ~ProtocolActions() = default;
  // While the budget of sends is used up, lower priorities leave first (0: needed first).
  virtual void send(Token token, int peer, int tag, const void* data, std::size_t bytes, int priority = 0) = 0;
  // `peer` may be kAnySource. A longer message than `room` is an EnvironmentError.
  virtual void receive(Token token, int peer, int tag, void* data, std::size_t room) = 0;
  // Arms the timer `token` for this time, which replaces the time for which it was armed before.
  virtual void arm(Token token, double at_s) = 0;
  virtual void disarm(Token token) = 0;
  // Tells the watchdog that this rank cannot go on without that peer, until `wait_over`. One wait per token.
  virtual void wait_for(Token token, int peer, int tag, std::int64_t step) = 0;
  virtual void wait_over(Token token) = 0;
  // Calls the host's `on_notified` at once, on the thread that drives.
  virtual void notify_host(Token token) = 0;
  // Ends the machine: it receives no further event. Queued sends still leave; receives in flight are cancelled.
  virtual void finish() = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  // Called by one thread at a time; must not block. An exception ends the machine and goes to the host's `failed`.
  virtual void on(const ProtocolEvent& event, ProtocolActions& actions) = 0;
};

// The owner of a machine. Called by the thread that drives, which it must not block; not called after the machine has
// ended.
class ProtocolHost {
 public:
  virtual ~ProtocolHost() = default;
  virtual void on_notified(Token token, double now_s) = 0;
  virtual void failed(std::exception_ptr error) = 0;
};

}  // namespace echelon::inline comm
