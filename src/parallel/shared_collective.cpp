// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/spans.hpp"
#include "parallel/interleave.hpp"
#include "parallel/replica_collective.hpp"

namespace echelon::inline parallel {
namespace {

constexpr std::size_t kAtOnce = 512;  // elements of a block that is added over all slots at once

// to[i] = slots[0][i] + slots[1][i] + ..; `to` may be one of the slots.
template <class T>
void add_slots(const std::vector<std::byte*>& slots, std::size_t begin, std::size_t end, std::byte* to) {
  std::array<T, kAtOnce> sums;
  for (; begin < end; begin += kAtOnce) {
    const std::size_t n = std::min(kAtOnce, end - begin);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      const T* values = reinterpret_cast<const T*>(slots[slot]) + begin;
      if (slot == 0)
        std::copy(values, values + n, sums.begin());
      else
        for (std::size_t i = 0; i < n; ++i) sums[i] += values[i];
    }
    std::copy(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(n), reinterpret_cast<T*>(to) + begin);
  }
}

class SharedCollective final : public ReplicaCollective {
 public:
  SharedCollective(Device& device, Engine& ranks, int channel, std::shared_ptr<SharedBlock> block,
                   std::size_t slot_bytes, WireCounters& sent)
      : device_(device),
        ranks_(ranks),
        channel_(channel),
        block_(std::move(block)),
        rounds_(parts(), ranks.rank(), slot_bytes),
        slot_bytes_(slot_bytes),
        sent_(sent) {}

  // Each rank adds one part of the values of all ranks, in its own slot, from which the others read it.
  void sum(const Tensor& from, const Tensor& to) override {
    ECHELON_CHECK_LE(from.bytes(), slot_bytes_);
    const auto elems = static_cast<std::size_t>(to.shape.elems()), elem = size_of(to.dtype);
    const auto k = static_cast<std::size_t>(ranks_.size()), mine = static_cast<std::size_t>(ranks_.rank());
    const auto begin = [&](std::size_t rank) { return elems * rank / k; };
    rounds_.begin();
    device_.to_host(rounds_.slot(ranks_.rank()), from.data, from.bytes());
    show();
    std::vector<std::byte*> slots;
    for (int rank = 0; rank < ranks_.size(); ++rank) slots.push_back(rounds_.slot(rank));
    if (to.dtype == DType::f64)
      add_slots<double>(slots, begin(mine), begin(mine + 1), slots[mine]);
    else
      add_slots<float>(slots, begin(mine), begin(mine + 1), slots[mine]);
    show();
    for (std::size_t rank = 0; rank < k; ++rank)
      device_.to_device(static_cast<std::byte*>(to.data) + begin(rank) * elem, slots[rank] + begin(rank) * elem,
                        (begin(rank + 1) - begin(rank)) * elem);
    const std::size_t own = begin(mine + 1) - begin(mine);
    count(2, (elems - own + (k - 1) * own) * elem);
  }

  void gather(const GatherForm& form, const Tensor& from, const Tensor& to) override {
    ECHELON_CHECK_LE(from.bytes(), slot_bytes_);
    rounds_.begin();
    device_.to_host(rounds_.slot(ranks_.rank()), from.data, from.bytes());
    show();
    std::vector<const std::byte*> blocks;
    for (int rank = 0; rank < ranks_.size(); ++rank) blocks.push_back(rounds_.slot(rank));
    if (!device_.on_host() && whole_.bytes() < to.bytes()) whole_ = device_.allocate_host(to.bytes());
    interleave(form, blocks, size_of(to.dtype), device_.on_host() ? to.data : whole_.data());
    if (!device_.on_host()) device_.to_device(to.data, whole_.data(), to.bytes());
    count(1, static_cast<std::size_t>(ranks_.size() - 1) * from.bytes());
  }

 private:
  std::vector<std::byte*> parts() const {
    std::vector<std::byte*> all;
    for (int rank = 0; rank < ranks_.size(); ++rank) all.push_back(block_->of(rank));
    return all;
  }
  // Publishes the progress of this rank; waits for the others.
  void show() {
    rounds_.show();
    const int missing = rounds_.missing();
    if (missing < 0) return;
    const WatchedSpan span(SpanKind::split_wait);
    wait_for_peer(ranks_, *block_, {.channel = channel_, .peer = missing}, [this] { return rounds_.missing() < 0; });
  }
  void count(std::uint64_t rounds, std::size_t bytes) {
    sent_.messages_sent += rounds * static_cast<std::uint64_t>(ranks_.size() - 1);
    sent_.bytes_sent += bytes;
  }

  Device& device_;
  Engine& ranks_;
  const int channel_;
  const std::shared_ptr<SharedBlock> block_;
  SharedRounds rounds_;
  const std::size_t slot_bytes_;
  Memory whole_;  // gathers if the host cannot access the device's memory
  WireCounters& sent_;
};

}  // namespace

std::unique_ptr<ReplicaCollective> make_shared_collective(Device& device, Engine& ranks, int channel,
                                                          std::shared_ptr<SharedBlock> block, std::size_t slot_bytes,
                                                          WireCounters& sent) {
  return std::make_unique<SharedCollective>(device, ranks, channel, std::move(block), slot_bytes, sent);
}

std::size_t shared_collective_bytes(std::size_t slot_bytes) { return SharedRounds::bytes(slot_bytes); }

}  // namespace echelon::inline parallel
