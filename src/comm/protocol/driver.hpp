// SPDX-License-Identifier: Apache-2.0
// Carries out the actions of a machine (machine.hpp) on a transport, pass by pass, without blocking. Any thread may
// call `post`; one thread at a time makes all other calls: the one that drives the engine, or a virtual world.
//
// A message of `frame_bytes` or more travels as frames of that length and a last frame that is shorter, perhaps empty.
// Each frame leaves without a rendezvous (mpi/tcp_settings.hpp), and a more urgent message may leave between two
// frames. Without frames, over TCP at 1 Gbit/s, messages of 0.8 MB in both directions waited for each other's
// acknowledgements.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/collective/executor.hpp"
#include "comm/protocol/machine.hpp"
#include "comm/transport.hpp"
#include "device/device.hpp"

namespace echelon::inline comm {

// A wait that the watchdog sees: one that a machine reported, or a send in flight, which ends only once the peer takes
// part. `since_s` is a time of the transport's clock.
struct ProtocolWait {
  int peer = -1;
  int tag = 0;
  std::int64_t step = 0;
  double since_s = 0;
  bool sending = false;
};

// Fits a segment of 256 KiB with its header, and is within the eager limit of 320 KiB.
inline constexpr std::size_t kFrameBytes = std::size_t{264} << 10;

class ProtocolDriver final : private ProtocolActions {
 public:
  // Machine and host outlive the driver. `frame_bytes` is the same on all ranks.
  ProtocolDriver(Machine& machine, ProtocolHost& host, std::size_t frame_bytes = kFrameBytes)
      : machine_(machine), host_(host), frame_bytes_(frame_bytes) {}

  // Any thread: the machine receives the event `posted` once `after` has passed (null: in the next pass). Posts without
  // `after` arrive in order. The caller must wake the thread that drives.
  void post(Token token, std::shared_ptr<const Event> after = nullptr);

  // Delivers posts, due timers and received messages, in this order, then starts queued sends within the budget; true
  // if anything happened. Never throws: an exception of the machine or the transport ends the machine and goes to
  // host.failed.
  bool pass(Transport& transport, SendBudget& budget);
  // Whether something is in flight, so that a later pass may make progress without a new post.
  bool busy() const;
  bool finished() const { return finished_; }
  // Whether sends are queued beyond the budget.
  bool sends_wait() const { return !queued_.empty(); }
  // The earliest armed timer; infinity if there is none.
  double wakes_at_s() const;
  // Cancels everything in flight; an error goes to host.failed, once.
  void end(Transport& transport, SendBudget& budget, const std::exception_ptr& error = nullptr);

  std::vector<ProtocolWait> waits() const;
  const WireCounters& wire() const { return wire_; }  // messages sent so far

 private:
  // A message, or the rest of one; only one frame of it is in flight.
  struct Send {
    Token token;
    int peer, tag;
    const std::byte* data;
    std::size_t bytes;
    int priority;
    std::uint64_t serial;  // serial number of the message
    Request request;
    double since_s = 0;
  };
  struct Receive {
    Token token;
    int peer, tag;
    std::byte* data;
    std::size_t room;
    std::size_t arrived = 0;  // bytes received in earlier frames
    Request request = {};
    double since_s = 0;
  };
  struct Post {
    Token token;
    std::shared_ptr<const Event> after;
  };

  void send(Token token, int peer, int tag, const void* data, std::size_t bytes, int priority) override;
  void receive(Token token, int peer, int tag, void* data, std::size_t room) override;
  void arm(Token token, double at_s) override { timers_[token] = at_s; }
  void disarm(Token token) override { timers_.erase(token); }
  void wait_for(Token token, int peer, int tag, std::int64_t step) override;
  void wait_over(Token token) override { waits_.erase(token); }
  void notify_host(Token token) override { host_.on_notified(token, now_s_); }
  void finish() override { finished_ = true; }

  bool step(Transport& transport, SendBudget& budget);
  void deliver(const ProtocolEvent& event);
  bool deliver_posts();
  bool deliver_timers();
  bool start_sends(Transport& transport, SendBudget& budget);
  bool start_receives(Transport& transport);
  bool in_frames(std::size_t bytes) const { return bytes >= frame_bytes_; }
  void start_frame(Receive& receive, Transport& transport);
  bool must_wait(std::size_t next) const;
  bool all_sent(const Send& done) const;
  bool finish_sends(Transport& transport, SendBudget& budget);
  bool finish_receives(Transport& transport);

  Machine& machine_;
  ProtocolHost& host_;
  std::size_t frame_bytes_;
  bool started_ = false, finished_ = false;
  double now_s_ = 0;
  std::uint64_t messages_ = 0;  // sent or queued so far
  std::deque<Send> queued_;     // by priority, then in order of the actions
  std::vector<Send> sends_;     // in flight
  std::deque<Receive> new_receives_;
  std::vector<Receive> receives_;  // in flight, in order
  std::map<Token, double> timers_;
  std::vector<Token> due_;
  std::map<Token, ProtocolWait> waits_;
  WireCounters wire_;
  std::vector<Post> posts_;   // taken from the inbox; some wait for an event
  mutable std::mutex mutex_;  // guards the inbox
  std::vector<Post> inbox_;
  std::atomic<bool> has_mail_ = false;
};

}  // namespace echelon::inline comm
