// SPDX-License-Identifier: Apache-2.0
// A replica's side of the decentralised exchange on an engine: its messages, those that have arrived, and meetings. The
// machine is in protocol.hpp. Only the compute thread calls this class.
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
  // Adds a message to the weights of bucket b. The compute thread calls it inside calls of this class; from
  // come_to_meeting to the end of leave_meeting the thread that drives the engine calls it.
  using Apply = std::function<void(std::size_t b, StromMessage message)>;

  // Needs at least two ranks. The engine must outlive this object.
  StromExchange(Engine& engine, const StromTraffic& traffic, Apply apply);

  // Must be called before the first message or meeting; does nothing afterwards.
  void attach();
  // has_slot: whether a message of bucket b can be sent now; always true in synchronous rounds. room: the buffer for
  // the next message, which stays valid until the one after it is written.
  bool has_slot(std::size_t b) const;
  std::byte* room(std::size_t b) { return protocol_.draft(static_cast<int>(b)); }
  void send(std::size_t b, std::size_t bytes);

  // Synchronous, after `send`: waits for the messages of all ranks and applies them in the order of ranks, including
  // `own`.
  void finish_round(std::size_t b, StromMessage own, StepAccount& account);
  // Asynchronous: applies messages in the order of arrival. Returns whether there were any.
  bool apply_arrived();
  // Asynchronous: from now on messages are applied as they arrive. Returns at once.
  void come_to_meeting();
  // Blocks until all ranks have come and all their messages are applied. Returns false if this replica is at no
  // meeting.
  bool leave_meeting();

  // The traffic sent since the last call, except what finish_round has noted.
  WireCounters take_sent();

 private:
  struct Arrival {
    int origin = 0;
    StromMessage message;
  };
  struct Bucket {
    Promise promise;  // for a synchronous round
    Ticket ticket;
    double begun_s = 0;
    std::deque<Arrival> arrived;  // messages that are not applied yet
    int free = kStromSlots;       // asynchronous: number of free slots for messages
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
  Ticket meeting_;            // valid: this replica has come to a meeting and has not left it
  mutable std::mutex mutex_;  // protects arrivals, free slots, promises, error_ and sent_
  bool at_meeting_ = false;   // the thread that drives the engine applies arrivals
  WireCounters sent_;
  std::exception_ptr error_;                // the error that ended the protocol
  std::unique_ptr<Attachment> attachment_;  // must be destroyed first
};

}  // namespace echelon::inline exchange
