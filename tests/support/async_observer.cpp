// SPDX-License-Identifier: Apache-2.0
#include "tests/support/async_observer.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "tests/support/ledger_rows.hpp"

namespace echelon::test {
namespace {

// Converts a factor to an integer, so that sums of scaled updates are exact too.
std::int64_t millionths(double factor) { return std::llround(factor * 1e6); }

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

AsyncObserver::AsyncObserver(int workers, const AsyncRules& rules, std::vector<Parts> parts)
    : workers_(workers), rules_(rules), ranks_(at(workers)) {
  for (std::size_t b = 0; b < parts.size(); ++b)
    for (std::size_t s = 0; s < parts[b].size(); ++s) {
      if (parts[b][s].empty()) continue;
      Piece& piece = pieces_[{static_cast<int>(b), static_cast<int>(s)}];
      piece.range = parts[b][s];
      piece.weights.resize(at(piece.range.elems()));
      piece.sum = piece.weights;
      piece.snapshots = {piece.weights};
      piece.pulled.resize(at(workers));
    }
  for (Worker& w : ranks_) {
    w.pushes.resize(parts.size());
    w.in_epoch.resize(parts.size());
  }
}

void AsyncObserver::pushed(int w, int b) {
  const std::lock_guard lock(mutex_);
  ++ranks_[at(w)].pushes[at(b)];
  ++ranks_[at(w)].in_epoch[at(b)];
}

// From now on this worker may go on to its next push of b, so the bound must hold against the others' pushes so far.
void AsyncObserver::settled(int w, int b) {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.lower_bound({b, 0});
  if (piece == pieces_.end() || piece->first.first != b) return;  // a bucket without elements has no servers
  const Worker& own = ranks_[at(w)];
  for (const Worker& other : ranks_) {
    if (other.done || (other.met && other.epoch == own.epoch)) continue;
    ECHELON_CHECK_LE(other.epoch, own.epoch);
    const std::int64_t theirs = other.epoch < own.epoch ? 0 : other.in_epoch[at(b)];
    const std::int64_t lead = own.in_epoch[at(b)] - theirs;
    lead_ = std::max(lead_, lead);
    if (rules_.bound)
      ECHELON_CHECK_LE(lead, *rules_.bound, "worker {} is that much ahead of the slowest in bucket {}", w, b);
  }
}

void AsyncObserver::came_to_meeting(int w) {
  const std::lock_guard lock(mutex_);
  ranks_[at(w)].met = true;
  ++ranks_[at(w)].meetings;
}

void AsyncObserver::left_meeting(int w) {
  const std::lock_guard lock(mutex_);
  Worker& own = ranks_[at(w)];
  for (const Worker& other : ranks_)
    ECHELON_CHECK(other.done || other.meetings >= own.meetings, "worker {} was told of a meeting without all", w);
  own.met = false;
  ++own.epoch;
  own.in_epoch.assign(own.in_epoch.size(), 0);
}

void AsyncObserver::done(int w) {
  const std::lock_guard lock(mutex_);
  ranks_[at(w)].done = true;
}

void AsyncObserver::taken(int w, int b, int server, const AsyncHeader& header, const Integers& weights) {
  const std::lock_guard lock(mutex_);
  Piece& from = piece(b, server);
  ECHELON_CHECK_GE(header.version, 0);
  ECHELON_CHECK_LE(header.version, from.version);
  ECHELON_CHECK(weights == from.snapshots[at(header.version)], "worker {}: weights of bucket {} are not of version {}",
                w, b, header.version);
  ECHELON_CHECK_EQ(header.clock, ranks_[at(w)].pushes[at(b)], "answer to another push");
  from.pulled[at(w)].push_back(header.version);
  if (header.kind != static_cast<std::uint32_t>(AsyncKind::meet)) return;
  const auto first = from.closed_at.emplace(ranks_[at(w)].meetings, header.version).first;
  ECHELON_CHECK_EQ(first->second, header.version, "worker {} left a meeting with other weights", w);
}

void AsyncObserver::applied(int b, int server, int w, const AsyncUpdate& update, const Integers& numbers) {
  const std::lock_guard lock(mutex_);
  Piece& to = piece(b, server);
  ECHELON_CHECK_EQ(update.clock, ranks_[at(w)].pushes[at(b)], "push of worker {} that is applied", w);
  ECHELON_CHECK_GE(std::ssize(numbers), to.range.elems());
  for (std::int64_t i = 0; i < to.range.elems(); ++i) {
    ECHELON_CHECK_EQ(numbers[at(i)], gradient(w, update.clock, b, to.range.begin + i));
    to.sum[at(i)] += millionths(update.factor) * numbers[at(i)];
  }
  to.applied.push_back({w, update});
  if (update.new_version) new_version(to);
}

void AsyncObserver::flushed(int b, int server) {
  const std::lock_guard lock(mutex_);
  new_version(piece(b, server));
}

Integers AsyncObserver::weights(int b, int server) {
  const std::lock_guard lock(mutex_);
  return piece(b, server).weights;
}

void AsyncObserver::new_version(Piece& piece) {
  for (std::size_t i = 0; i < piece.sum.size(); ++i) piece.weights[i] += std::exchange(piece.sum[i], 0);
  piece.snapshots.push_back(piece.weights);
  ++piece.version;
}

void AsyncObserver::check_piece(int b, int server, const AsyncPiece& found) const {
  const Piece& piece = pieces_.at({b, server});
  Integers clocks(at(workers_)), messages(at(workers_)), state(at(workers_)), weights(piece.weights.size());
  std::vector<StalenessTally> tallies(at(workers_));
  std::int64_t version = 0, pending = 0;
  std::size_t next = 0;
  for (const LedgerRow& row : ledger_rows(found.ledger())) {
    const int w = row.entry.worker;
    ECHELON_CHECK_EQ(state[at(w)], 0, "worker {} sends although it is at a meeting or done", w);
    const std::int64_t sent = messages[at(w)]++;
    if (row.entry.kind == AsyncKind::update) {
      ECHELON_CHECK_EQ(row.clock, ++clocks[at(w)]);
      const std::int64_t pulled = sent == 0 ? 0 : piece.pulled[at(w)].at(at(sent - 1));
      const std::int64_t staleness = version - pulled;
      ECHELON_CHECK_EQ(row.entry.staleness, staleness, "bucket {}, push {} of worker {}", b, row.clock, w);
      const bool dropped = rules_.drop_above && staleness > *rules_.drop_above;
      ECHELON_CHECK_EQ(row.entry.dropped, dropped, "staleness {}", staleness);
      if (rules_.bound) {
        const std::int64_t others = (2 * *rules_.bound + 1) * (workers_ - 1);
        ECHELON_CHECK_LE(staleness, (others + rules_.soft - 1) / rules_.soft, "bucket {} worker {}", b, w);
      }
      (dropped ? tallies[at(w)].dropped : tallies[at(w)].applied) += 1;
      if (!dropped) {
        ++tallies[at(w)].histogram[staleness];
        tallies[at(w)].most = std::max(tallies[at(w)].most, staleness);
        tallies[at(w)].sum += static_cast<double>(staleness);
        const Applied& applied = piece.applied.at(next++);
        const bool makes = ++pending == rules_.soft;
        ECHELON_CHECK_EQ(applied.worker, w);
        ECHELON_CHECK_EQ(applied.update.clock, row.clock);
        ECHELON_CHECK_EQ(applied.update.staleness, staleness);
        ECHELON_CHECK_EQ(applied.update.new_version, makes);
        const double factor = rules_.scale ? *rules_.scale / static_cast<double>(staleness > 1 ? staleness : 1) : 1.0;
        ECHELON_CHECK_EQ(applied.update.factor, factor);
        for (std::int64_t i = 0; i < std::ssize(weights); ++i)
          weights[at(i)] += millionths(factor) * gradient(w, row.clock, b, piece.range.begin + i);
        if (makes) pending = 0, ++version;
      }
    } else {
      state[at(w)] = row.entry.kind == AsyncKind::meet ? 1 : 2;
      if (std::count(state.begin(), state.end(), 0) == 0) {
        if (pending > 0) pending = 0, ++version;
        std::replace(state.begin(), state.end(), std::int64_t{1}, std::int64_t{0});
      }
    }
    ECHELON_CHECK_EQ(row.version, version, "after push {} of worker {}", row.clock, w);
  }
  ECHELON_CHECK_EQ(next, piece.applied.size(), "updates applied");
  ECHELON_CHECK_EQ(found.version(), version);
  ECHELON_CHECK_EQ(piece.version, version);
  ECHELON_CHECK(piece.weights == weights, "bucket {} at rank {}: each update once, or dropped", b, server);
  for (int w = 0; w < workers_; ++w) {
    const Worker& own = ranks_[at(w)];
    ECHELON_CHECK_EQ(clocks[at(w)], own.pushes[at(b)], "pushes of worker {}, applied and dropped", w);
    ECHELON_CHECK_EQ(messages[at(w)], own.pushes[at(b)] + own.meetings + 1);
    ECHELON_CHECK_EQ(std::ssize(piece.pulled[at(w)]), own.pushes[at(b)] + own.meetings, "answers to worker {}", w);
    const StalenessTally& tally = found.staleness(w);
    ECHELON_CHECK_EQ(tally.applied, tallies[at(w)].applied);
    ECHELON_CHECK_EQ(tally.dropped, tallies[at(w)].dropped);
    ECHELON_CHECK_EQ(tally.most, tallies[at(w)].most);
    ECHELON_CHECK_EQ(tally.sum, tallies[at(w)].sum);
    ECHELON_CHECK(tally.histogram == tallies[at(w)].histogram, "histogram of worker {}", w);
  }
}

std::uint64_t AsyncObserver::messages() const {
  std::int64_t all = 0;
  for (const auto& [key, piece] : pieces_)
    for (int w = 0; w < workers_; ++w)
      if (w != key.second) all += 2 * (ranks_[at(w)].pushes[at(key.first)] + ranks_[at(w)].meetings) + 1;
  return static_cast<std::uint64_t>(all);
}

}  // namespace echelon::test
