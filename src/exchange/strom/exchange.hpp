// A replica's side of decentralised exchange on an engine: what it sends, what has arrived, and meetings. The machine
// is protocol.hpp. All calls are the compute thread's.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/engine.hpp"
#include "exchange/step_account.hpp"
#include "exchange/strom/message.hpp"
#include "exchange/strom/protocol.hpp"

namespace echelon::inline exchange {

class StromExchange final : private ProtocolHost {
 public:
  // Adds a message to the weights of bucket b. Called by the compute thread, inside calls of this; from come_to_meeting
  // to the end of leave_meeting by the thread that drives.
  using Apply = std::function<void(std::size_t b, StromMessage message)>;

  // At least two ranks. The engine outlives this.
  StromExchange(Engine& engine, const StromTraffic& traffic, Apply apply);

  // Before the first message or meeting; free afterwards.
  void attach();
  // Whether a message of bucket b can be sent now; synchronous: always. Where it is written; it stays there until the
  // next one is written.
  bool has_slot(std::size_t b) const;
  std::byte* room(std::size_t b) { return protocol_.draft(static_cast<int>(b)); }
  void send(std::size_t b, std::size_t bytes);

  // Synchronous, after `send`: waits for the messages of all and applies them in the order of ranks, `own` in its
  // place.
  void finish_round(std::size_t b, StromMessage own, StepAccount& account);
  // Asynchronous: applies what has arrived, in that order. Whether there was anything.
  bool apply_arrived();
  // Asynchronous: from now on messages are applied as they arrive; returns at once.
  void come_to_meeting();
  // Returns once all have come and all their messages were applied; false: this replica is at no meeting.
  bool leave_meeting();

  // What was sent since the last call, without what finish_round has noted.
  WireCounters take_sent();

 private:
  struct Arrival {
    int origin = 0;
    StromMessage message;
  };
  struct Bucket {
    Promise promise;  // of a synchronous round
    Ticket ticket;
    double begun_s = 0;
    std::deque<Arrival> arrived;  // messages that are not applied yet
    int free = kStromSlots;       // asynchronous: slots for messages
  };

  std::deque<Arrival> take_arrived(std::size_t b);
  void give_back(std::size_t b, const std::deque<Arrival>& applied);
  void on_notified(Token token, double now_s) override;
  void failed(std::exception_ptr error) override;

  Engine& engine_;
  bool asynchronous_;
  Apply apply_;
  StromProtocol protocol_;
  std::vector<Bucket> buckets_;
  Promise meet_;
  Ticket meeting_;            // valid: this replica has come to a meeting, and has not left it
  mutable std::mutex mutex_;  // of arrivals, free slots, promises, the error and what was sent
  bool at_meeting_ = false;   // arrivals are applied by the thread that drives
  WireCounters sent_;
  std::exception_ptr error_;                // that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // ends first
};

}  // namespace echelon::inline exchange
