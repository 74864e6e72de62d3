// SPDX-License-Identifier: Apache-2.0
// The decisions of a server about one piece, which is its part of one bucket: which updates enter the weights, with
// which factor and as which version, and when each worker is answered. This class only keeps counts and order; its
// owner has the data.
//
// Messages are processed one at a time: without a recorded order, in the order of `arrived`; with one, a message waits
// for its turn until the recorded order is used up. Everything else is a function of that order (rules.hpp):
//
//   update  is dropped, or applied with factor(staleness); S applied updates make a version. The worker's clock
//           advances by 1, and the update can be answered
//   meet    counts as infinitely fast for the bound. When all workers have come or are done, the piece closes: a
//           version of fewer than S updates is applied, all clocks become the largest one, and all workers at the
//           meeting are answered with the same weights
//   done    acts like meet for ever, without an answer
//
// After each message, all answers that the bound now allows are sent in the order of ranks. An answer has the piece's
// version at that time.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "exchange/asynchronous/ledger.hpp"
#include "exchange/asynchronous/rules.hpp"
#include "exchange/staleness.hpp"

namespace echelon::inline exchange {

// An update that enters the weights.
struct AsyncUpdate {
  std::int64_t clock = 0;      // number of the worker's pushes of this piece, including this one
  std::int64_t staleness = 0;  // in versions
  double factor = 1;           // by which the rules multiply it
  bool new_version = true;     // it completes a version: it and the updates added up before change the weights
};

class AsyncPiece {
 public:
  // Carries out the decisions. Called inside `arrived`, which it must not call.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Applies the worker's last update. Not called for a dropped one.
    virtual void apply(int worker, const AsyncUpdate& update) = 0;
    // Applies the updates that were added up since the last version.
    virtual void flush() = 0;
    virtual void answer(int worker, std::int64_t version) = 0;
    virtual void closed(bool meeting) = 0;  // all have come; false: all are done, and no worker is answered
  };

  // `recorded` is the order of this piece in another run; empty: there is none. `owner` must outlive the piece.
  AsyncPiece(int workers, const AsyncRules& rules, LedgerBytes recorded, Owner& owner);

  // A worker's message has arrived after the answer to its last one was sent. `version` is that of the weights that it
  // has, `clock` the number of its pushes of this piece, including this one. A check fails if a message was lost or
  // came twice. Throws DataError (exit 4) if the recorded order is of another run: its next entry is another message,
  // staleness or decision.
  void arrived(int worker, AsyncKind kind, std::int64_t version, std::int64_t clock, double now_s);

  std::int64_t version() const { return version_; }
  bool all_done() const;
  // Whether entries of the recorded order are left.
  bool replaying() const { return !recorded_.over(); }
  // The order so far, since the last take_ledger().
  const LedgerBytes& ledger() const { return ledger_; }
  // Returns the entries since the last call and removes them; the host appends them to a file. Together the returned
  // parts are the whole order.
  LedgerBytes take_ledger() { return std::exchange(ledger_, {}); }
  // The tally of this worker's updates.
  const StalenessTally& staleness(int worker) const { return workers_[static_cast<std::size_t>(worker)].staleness; }

 private:
  struct Worker {
    std::optional<AsyncKind> arrived;  // message that is not processed yet
    std::int64_t clock = 0;            // for the bound; equal for all workers after a meeting
    std::int64_t pushes = 0;
    std::int64_t pulled = 0;  // version of the last answer
    bool met = false, done = false;
    bool due = false;  // its update is not answered yet
    double since_s = 0;
    StalenessTally staleness;

    bool pushes_on() const { return !met && !done; }
  };

  Worker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  std::optional<int> next() const;
  void take_up(int w, double now_s);
  LedgerEntry count_update(int w);
  void compare(const LedgerEntry& entry);
  void close(double now_s);
  void release(double now_s);
  void answer(int w);

  AsyncRules rules_;
  Owner& owner_;
  LedgerReader recorded_;
  LedgerBytes ledger_;
  std::vector<Worker> workers_;
  std::vector<int> queue_;  // workers with an unprocessed message, in the order of arrival
  std::int64_t version_ = 0;
  std::int64_t pending_ = 0;  // number of updates added up since the last version
};

}  // namespace echelon::inline exchange
