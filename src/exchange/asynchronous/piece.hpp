// What a server decides about one piece (its part of one bucket): which updates enter the weights, with which factor,
// as which version, and when each worker is answered. Counts and order only: bytes are its owner's.
//
// Arrivals are taken up one at a time. Without a recorded order that is the order of `arrived`; with one, an arrival
// waits for its turn, until the recorded order is used up. All else is a function of that order (rules.hpp):
//
//   update  dropped, or applied with factor(staleness) and version + 1 after S of them; the worker's clock + 1; then
//           its answer is due
//   meet    the worker counts as infinitely fast for the bound. When all workers have come or are done, the piece
//           closes: updates that wait for others of their version (fewer than S) enter the weights, all clocks become
//           the largest one, and all that came are answered, with the same weights
//   done    the same for ever, without an answer
//
// After each arrival all answers that the bound now allows leave, in the order of the ranks. The version of an answer
// is the piece's at that moment.
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
  std::int64_t clock = 0;      // the worker's pushes of this piece, this one included
  std::int64_t staleness = 0;  // in versions
  double factor = 1;           // that the rules multiply it by
  bool new_version = true;     // it is the last one of its version: what was added up, and this, changes the weights
};

class AsyncPiece {
 public:
  // What the decisions mean. Called inside `arrived`; must not call it.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Of the update that this worker sent last. One that is dropped is not shown.
    virtual void apply(int worker, const AsyncUpdate& update) = 0;
    // What was added up since the last version changes the weights.
    virtual void flush() = 0;
    virtual void answer(int worker, std::int64_t version) = 0;
    virtual void closed(bool meeting) = 0;  // all have come; false: all are done, nobody is there to be answered
  };

  // `recorded`: the order of another run of this piece; empty: none. `owner` outlives the piece.
  AsyncPiece(int workers, const AsyncRules& rules, LedgerBytes recorded, Owner& owner);

  // A worker's message is here, and its last answer has left. `version`: of the weights that it has; `clock`: updates
  // that it has pushed of this piece, with this one. A failed check where a message was lost or came twice; DataError
  // (exit 4) where the recorded order is of another run: another message, staleness or decision at this place.
  void arrived(int worker, AsyncKind kind, std::int64_t version, std::int64_t clock, double now_s);

  std::int64_t version() const { return version_; }
  bool all_done() const;
  // Entries of the recorded order that have not come yet.
  bool replaying() const { return !recorded_.over(); }
  // The order so far, since the last take_ledger().
  const LedgerBytes& ledger() const { return ledger_; }
  // Moves it out, for a host that writes it to a file from time to time: the parts one after the other are the whole.
  LedgerBytes take_ledger() { return std::exchange(ledger_, {}); }
  // Of an update, by worker.
  const StalenessTally& staleness(int worker) const { return workers_[static_cast<std::size_t>(worker)].staleness; }

 private:
  struct Worker {
    std::optional<AsyncKind> arrived;  // not taken up yet
    std::int64_t clock = 0;            // of the bound: equal for all after a meeting
    std::int64_t pushes = 0;
    std::int64_t pulled = 0;  // version of the last answer
    bool met = false, done = false;
    bool due = false;  // its answer
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
  std::vector<int> queue_;  // workers whose message is here, in the order of arrival
  std::int64_t version_ = 0;
  std::int64_t pending_ = 0;  // updates that were added up since the last version
};

}  // namespace echelon::inline exchange
