// SPDX-License-Identifier: Apache-2.0
#include "exchange/asynchronous/piece.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"

namespace echelon::inline exchange {
namespace {

constexpr const char* kReplayNeeds = "a replay needs the config, the data and the ranks of the recorded run";

std::string text(const LedgerEntry& entry) {
  switch (entry.kind) {
    case AsyncKind::update:
      return fmt::format("an update of worker {} with staleness {}, {}{}", entry.worker, entry.staleness,
                         entry.dropped ? "dropped" : "applied", entry.new_version ? " as a new version" : "");
    case AsyncKind::meet:
      return fmt::format("worker {} at a meeting{}", entry.worker, entry.new_version ? ", a new version" : "");
    case AsyncKind::done: break;
  }
  return fmt::format("the end of worker {}{}", entry.worker, entry.new_version ? ", a new version" : "");
}

}  // namespace

AsyncPiece::AsyncPiece(int workers, const AsyncRules& rules, LedgerBytes recorded, Owner& owner)
    : rules_(rules), owner_(owner), recorded_(std::move(recorded)), workers_(static_cast<std::size_t>(workers)) {
  ECHELON_CHECK_GE(workers, 1);
  rules_.check();
}

bool AsyncPiece::all_done() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.done; });
}

void AsyncPiece::arrived(int w, AsyncKind kind, std::int64_t version, std::int64_t clock, double now_s) {
  Worker& from = worker(w);
  ECHELON_CHECK(!from.arrived && !from.due && from.pushes_on(), "worker {} sends before it was answered", w);
  ECHELON_CHECK_EQ(version, from.pulled, "version that worker {} has", w);
  ECHELON_CHECK_EQ(clock, from.pushes + (kind == AsyncKind::update ? 1 : 0), "updates pushed by worker {}", w);
  from.arrived = kind;
  from.since_s = now_s;
  queue_.push_back(w);
  while (const std::optional<int> turn = next()) take_up(*turn, now_s);
}

// Returns the worker whose message is processed next; nothing if its message has not arrived.
std::optional<int> AsyncPiece::next() const {
  if (recorded_.over()) return queue_.empty() ? std::nullopt : std::optional(queue_.front());
  const int turn = recorded_.entry().worker;
  const auto at = static_cast<std::size_t>(turn);
  if (at >= workers_.size() || workers_[at].due || !workers_[at].pushes_on())
    throw DataError(fmt::format("replay: entry {} of the recorded order is {}, which cannot come here; {}",
                                recorded_.index(), text(recorded_.entry()), kReplayNeeds));
  if (!workers_[at].arrived) return std::nullopt;
  return turn;
}

LedgerEntry AsyncPiece::count_update(int w) {
  Worker& from = worker(w);
  LedgerEntry entry{.worker = w, .staleness = version_ - from.pulled};
  entry.dropped = rules_.drops(entry.staleness);
  if (!entry.dropped && ++pending_ >= rules_.soft) {
    entry.new_version = true;
    pending_ = 0;
    ++version_;
  }
  ++from.clock;
  ++from.pushes;
  from.due = true;
  from.staleness.add(entry.staleness, entry.dropped);
  return entry;
}

void AsyncPiece::take_up(int w, double now_s) {
  std::erase(queue_, w);
  Worker& from = worker(w);
  const AsyncKind kind = *std::exchange(from.arrived, std::nullopt);
  LedgerEntry entry{.worker = w, .kind = kind};
  if (kind == AsyncKind::update) entry = count_update(w);
  from.met = kind == AsyncKind::meet;
  from.done = kind == AsyncKind::done;
  const bool closes = std::none_of(workers_.begin(), workers_.end(), [](const Worker& o) { return o.pushes_on(); });
  const bool flushes = closes && pending_ > 0;
  if (flushes) {
    entry.new_version = true;
    pending_ = 0;
    ++version_;
  }
  compare(entry);
  append(ledger_, entry);
  if (kind == AsyncKind::update && !entry.dropped)
    owner_.apply(w, {.clock = from.pushes,
                     .staleness = entry.staleness,
                     .factor = rules_.factor(entry.staleness),
                     .new_version = entry.new_version});
  if (flushes) owner_.flush();
  closes ? close(now_s) : release(now_s);
}

void AsyncPiece::compare(const LedgerEntry& entry) {
  if (recorded_.over()) return;
  if (entry != recorded_.entry())
    throw DataError(fmt::format("replay: entry {} of the recorded order is {}, but this run has {}; {}",
                                recorded_.index(), text(recorded_.entry()), text(entry), kReplayNeeds));
  recorded_.next();
}

void AsyncPiece::close(double now_s) {
  std::int64_t latest = 0;
  for (const Worker& w : workers_) latest = std::max(latest, w.clock);
  bool meeting = false;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].clock = latest;
    if (!workers_[w].met) continue;
    workers_[w].met = false;
    workers_[w].staleness.meeting_s += now_s - workers_[w].since_s;
    meeting = true;
    answer(static_cast<int>(w));
  }
  owner_.closed(meeting);
}

void AsyncPiece::release(double now_s) {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const Worker& w : workers_)
    if (w.pushes_on()) slowest = std::min(slowest, w.clock);
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    if (!workers_[w].due || !rules_.releases(workers_[w].clock, slowest)) continue;
    workers_[w].staleness.add_held(now_s - workers_[w].since_s);
    answer(static_cast<int>(w));
  }
}

void AsyncPiece::answer(int w) {
  Worker& to = worker(w);
  to.due = false;
  to.pulled = version_;
  owner_.answer(w, version_);
}

}  // namespace echelon::inline exchange
