// SPDX-License-Identifier: Apache-2.0
#include "tests/support/discrete_sums.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "device/vector.hpp"
#include "tests/support/late_ops.hpp"

namespace echelon::test {
namespace {

// One round of a rendezvous, with the values of those that have come.
struct Round {
  std::vector<std::vector<std::byte>> terms;  // by rank
  std::size_t slot = 0, n = 0;
  int there = 0;
};

struct Rendezvous {
  std::mutex mutex;
  std::map<std::uint64_t, Round> rounds;
};

std::shared_ptr<Rendezvous> rendezvous_of(std::uint64_t id) {
  static std::mutex mutex;
  static std::map<std::uint64_t, std::weak_ptr<Rendezvous>> all;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Rendezvous> group = all[id].lock();
  if (!group) all[id] = group = std::make_shared<Rendezvous>();
  return group;
}

class DiscreteSums final : public DeviceAllreduce {
 public:
  DiscreteSums(const DeviceGroup& group, std::shared_ptr<LateStreams> streams, bool stuck)
      : rank_(group.rank),
        ranks_(group.ranks),
        stuck_(stuck),
        streams_(std::move(streams)),
        stream_(streams_->add()),
        done_(group.slots) {
    static std::atomic<std::uint64_t> next = 1;
    std::uint64_t id = rank_ == 0 ? next++ : 0;
    group.broadcast(&id, sizeof id);
    rendezvous_ = rendezvous_of(id);
  }

  void sum(std::size_t slot, DType dtype, void* data, std::size_t n) override {
    const std::uint64_t number = round_++;
    streams_->put_wait(stream_, streams_->record(kOpStream));
    streams_->put(stream_, [=, group = rendezvous_, rank = rank_, ranks = ranks_] {
      come(*group, rank, ranks, {slot, number}, dtype, data, n);
    });
    streams_->put_wait(stream_, [group = rendezvous_, number, ranks = ranks_, stuck = stuck_] {
      const std::lock_guard lock(group->mutex);
      return !stuck && group->rounds[number].there == ranks;
    });
    streams_->put(stream_, [group = rendezvous_, number, dtype, data, n] { take(*group, number, dtype, data, n); });
    const std::lock_guard lock(mutex_);
    done_.at(slot) = streams_->record(stream_);
  }

  void join(std::size_t slot) override { streams_->put_wait(kOpStream, done_.at(slot)); }
  bool done(std::size_t slot) const override {
    const std::lock_guard lock(mutex_);
    return streams_->passed(done_.at(slot));
  }

 private:
  struct Place {
    std::size_t slot;
    std::uint64_t number;  // number of the sum
  };
  static void come(Rendezvous& group, int rank, int ranks, Place at, DType dtype, const void* data, std::size_t n) {
    const auto* mine = static_cast<const std::byte*>(data);
    const std::lock_guard lock(group.mutex);
    Round& round = group.rounds[at.number];
    if (round.there == 0)
      round = {.terms = std::vector<std::vector<std::byte>>(static_cast<std::size_t>(ranks)), .slot = at.slot, .n = n};
    ECHELON_CHECK(round.slot == at.slot && round.n == n, "ranks sum in different orders");
    round.terms[static_cast<std::size_t>(rank)].assign(mine, mine + n * size_of(dtype));
    ++round.there;
  }
  static void take(Rendezvous& group, std::uint64_t number, DType dtype, void* data, std::size_t n) {
    const std::lock_guard lock(group.mutex);
    const Round& round = group.rounds[number];
    std::memcpy(data, round.terms[0].data(), n * size_of(dtype));
    for (std::size_t r = 1; r < round.terms.size(); ++r) host_vector_ops().add(dtype, data, round.terms[r].data(), n);
  }

  int rank_, ranks_;
  bool stuck_;
  std::shared_ptr<LateStreams> streams_;
  int stream_;
  mutable std::mutex mutex_;
  std::vector<LateStreams::Mark> done_;  // one per slot
  std::shared_ptr<Rendezvous> rendezvous_;
  std::uint64_t round_ = 0;
};

}  // namespace

std::unique_ptr<DeviceAllreduce> make_discrete_sums(const DeviceGroup& group, std::shared_ptr<LateStreams> streams,
                                                    bool stuck) {
  return std::make_unique<DiscreteSums>(group, std::move(streams), stuck);
}

}  // namespace echelon::test
