// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strom_observer.hpp"

#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "exchange/strom/protocol.hpp"

namespace echelon::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
void update_all(const StromSchedule& schedule, int rank, std::int64_t step, const T* weights, T* changed) {
  const HashRng random = HashRng(schedule.network.seed, "strom update").at(at(rank)).at(at(step));
  for (std::int64_t i = 0; i < schedule.elems(); ++i) {
    const double draw = random.uniform(at(i));
    const double target = std::sin(static_cast<double>(3 * rank + i));
    changed[i] =
        schedule.dyadic
            ? weights[i] + static_cast<T>(std::floor(draw * 65) - 32) / T{64}
            : weights[i] + static_cast<T>(0.2 * (target - static_cast<double>(weights[i])) + 0.1 * (draw - 0.5));
  }
}

}  // namespace

void make_update(const StromSchedule& schedule, int rank, std::int64_t step, const StromOutcome::Bytes& weights,
                 StromOutcome::Bytes& changed) {
  if (schedule.format.dtype == DType::f64)
    update_all(schedule, rank, step, reinterpret_cast<const double*>(weights.data()),
               reinterpret_cast<double*>(changed.data()));
  else
    update_all(schedule, rank, step, reinterpret_cast<const float*>(weights.data()),
               reinterpret_cast<float*>(changed.data()));
}

StromObserver::StromObserver(const StromSchedule& schedule) : schedule_(schedule) {
  const std::size_t k = at(schedule.ranks), buckets = schedule.buckets.size();
  std::int64_t begin = 0;
  for (const std::int64_t elems : schedule.buckets) ranges_.push_back({begin, begin + elems}), begin += elems;
  sent_.assign(k, std::vector<std::vector<Bytes>>(buckets));
  applied_.assign(k, Counts(k, std::vector<std::int64_t>(buckets)));
  updates_.assign(k, std::vector<double>(at(begin)));
  out_ = sizes_ = updates_;
  meetings_.resize(k);
  ended_rounds_.resize(k);
}

double StromObserver::read(const Bytes& values, std::int64_t i) const {
  return schedule_.format.dtype == DType::f64 ? reinterpret_cast<const double*>(values.data())[i]
                                              : reinterpret_cast<const float*>(values.data())[i];
}

void StromObserver::updated(int rank, ArenaRange range, const Bytes& changed, const Bytes& weights) {
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const double update = read(changed, i) - read(weights, i);
    updates_[at(rank)][at(i)] += update;
    sizes_[at(rank)][at(i)] += std::abs(update);
  }
}

void StromObserver::sent(int rank, int b, StromMessage message) {
  std::vector<Bytes>& all = sent_[at(rank)][at(b)];
  all.emplace_back(message.begin(), message.end());
  const int next = (rank + 1) % schedule_.ranks;
  for (int other = 0; other < schedule_.ranks; ++other) {
    if (other == rank || (schedule_.ring && other != next)) continue;
    const std::int64_t under_way = static_cast<std::int64_t>(all.size()) - applied_[at(other)][at(rank)][at(b)];
    ECHELON_CHECK_LE(under_way, schedule_.asynchronous ? kStromSlots : 2, "messages from {} to {}", rank, other);
  }
  const auto k = static_cast<std::uint64_t>(schedule_.ranks);
  messages_ += (k - 1) * (schedule_.asynchronous ? 2 : 1);  // acknowledgements carry no bytes
  bytes_ += (k - 1) * message.size();
  const ArenaRange range = ranges_[at(b)];
  const DType dtype = schedule_.format.dtype;
  Bytes decoded(at(range.elems()) * size_of(dtype));
  add_message(message, schedule_.format.entropy, decoded.data(), dtype, range.elems());
  for (std::int64_t i = 0; i < range.elems(); ++i) out_[at(rank)][at(range.begin + i)] += read(decoded, i);
}

void StromObserver::applied(int rank, int origin, int b, StromMessage message) {
  const std::int64_t number = applied_[at(rank)][at(origin)][at(b)]++;
  const std::vector<Bytes>& all = sent_[at(origin)][at(b)];
  ECHELON_CHECK_LT(number, static_cast<std::int64_t>(all.size()), "rank {} applies what rank {} did not send", rank,
                   origin);
  ECHELON_CHECK_EQ(message.size(), all[at(number)].size(), "message {} of rank {}", number, origin);
  ECHELON_CHECK(std::memcmp(message.data(), all[at(number)].data(), message.size()) == 0, "message {} of rank {}",
                number, origin);
}

void StromObserver::came(int rank) {
  const std::size_t meeting = at(meetings_[at(rank)]++);
  if (at_meeting_.size() <= meeting)
    at_meeting_.resize(meeting + 1, Counts(sent_.size(), std::vector<std::int64_t>(ranges_.size(), -1)));
  for (std::size_t b = 0; b < ranges_.size(); ++b)
    at_meeting_[meeting][at(rank)][b] = static_cast<std::int64_t>(sent_[at(rank)][b].size());
  messages_ += 2 * ranges_.size() * (sent_.size() - 1);  // markers and their acknowledgements
}

void StromObserver::met(int rank) {
  const Counts& made = at_meeting_.at(at(meetings_[at(rank)] - 1));
  for (std::size_t origin = 0; origin < sent_.size(); ++origin)
    for (std::size_t b = 0; b < ranges_.size() && origin != at(rank); ++b)
      ECHELON_CHECK_EQ(applied_[at(rank)][origin][b], made[origin][b], "rank {} met without all of rank {}", rank,
                       origin);
}

void StromObserver::ended_round(int rank, const Bytes& weights) {
  const std::size_t round = ended_rounds_[at(rank)]++;
  if (rounds_.size() <= round) rounds_.push_back(weights);
  ECHELON_CHECK(rounds_[round] == weights, "weights of rank {} after step {} differ", rank, round + 1);
}

void StromObserver::ended(int rank, const Bytes& weights, const Bytes& residual) const {
  for (std::size_t origin = 0; origin < sent_.size(); ++origin)
    for (std::size_t b = 0; b < ranges_.size() && origin != at(rank); ++b)
      ECHELON_CHECK_EQ(applied_[at(rank)][origin][b], static_cast<std::int64_t>(sent_[origin][b].size()),
                       "messages of rank {} that rank {} applied", origin, rank);
  const bool wide = schedule_.format.dtype == DType::f64;
  for (std::int64_t i = 0; i < schedule_.elems(); ++i) {
    double all = 0, size = 1;
    for (std::size_t r = 0; r < sent_.size(); ++r) all += out_[r][at(i)], size += sizes_[r][at(i)];
    const double rounds = schedule_.dyadic ? 0 : wide ? 1e-12 : 1e-6;
    const double own = out_[at(rank)][at(i)] + read(residual, i) - updates_[at(rank)][at(i)];
    ECHELON_CHECK_LE(std::abs(own), rounds * size, "value {} of rank {}: sent + residual - updates", i, rank);
    ECHELON_CHECK_LE(std::abs(read(weights, i) - all), 4 * rounds * size, "value {} of rank {}: all that was sent", i,
                     rank);
  }
}

}  // namespace echelon::test
