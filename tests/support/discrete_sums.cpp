#include "tests/support/discrete_sums.hpp"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "device/vector.hpp"

namespace echelon::test {
namespace {

// One round of a rendezvous: everybody's values are there, or not yet.
struct Round {
  std::vector<std::vector<std::byte>> terms;  // by rank
  std::size_t slot = 0, n = 0;
  int there = 0;
};

struct Rendezvous {
  std::mutex mutex;
  std::condition_variable all_there;
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
  explicit DiscreteSums(const DeviceGroup& group) : rank_(group.rank), ranks_(group.ranks) {
    static std::atomic<std::uint64_t> next = 1;
    std::uint64_t id = rank_ == 0 ? next++ : 0;
    group.broadcast(&id, sizeof id);
    rendezvous_ = rendezvous_of(id);
  }

  void sum(std::size_t slot, DType dtype, void* data, std::size_t n) override {
    const std::size_t bytes = n * size_of(dtype);
    const auto* mine = static_cast<const std::byte*>(data);
    std::unique_lock lock(rendezvous_->mutex);
    Round& round = rendezvous_->rounds[round_++];
    if (round.there == 0) round = {.terms = std::vector<std::vector<std::byte>>(ranks_of()), .slot = slot, .n = n};
    ECHELON_CHECK(round.slot == slot && round.n == n, "ranks sum in different orders");
    round.terms[static_cast<std::size_t>(rank_)].assign(mine, mine + bytes);
    if (++round.there == ranks_) rendezvous_->all_there.notify_all();
    rendezvous_->all_there.wait(lock, [&] { return round.there == ranks_; });
    std::vector<std::byte> total = round.terms[0];
    for (std::size_t r = 1; r < ranks_of(); ++r) host_vector_ops().add(dtype, total.data(), round.terms[r].data(), n);
    sums_[slot] = {data, std::move(total)};
  }

  void join(std::size_t slot) override {
    const auto& [data, total] = sums_.at(slot);
    std::memcpy(data, total.data(), total.size());
    sums_.erase(slot);
  }

 private:
  struct Sum {
    void* data;
    std::vector<std::byte> total;
  };
  std::size_t ranks_of() const { return static_cast<std::size_t>(ranks_); }

  int rank_, ranks_;
  std::shared_ptr<Rendezvous> rendezvous_;
  std::uint64_t round_ = 0;
  std::map<std::size_t, Sum> sums_;  // by slot
};

}  // namespace

std::unique_ptr<DeviceAllreduce> make_discrete_sums(const DeviceGroup& group) {
  return std::make_unique<DiscreteSums>(group);
}

}  // namespace echelon::test
