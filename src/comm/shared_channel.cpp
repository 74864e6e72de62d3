// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_channel.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::size_t kPage = 4096, kLine = 64;
constexpr std::size_t kSlotBytes = kPage + SharedChannel::kSlotElems * sizeof(double);
static_assert(kSlotBytes % kPage == 0 && SharedChannel::kInline * sizeof(double) + sizeof(std::uint64_t) <= kLine &&
              std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

std::size_t SharedChannel::bytes() { return kPage + kSlots * kSlotBytes; }

SharedChannel::SharedChannel(std::shared_ptr<SharedBlock> block, std::vector<int> parts, int rank)
    : block_(std::move(block)), parts_(std::move(parts)), rank_(rank), seen_(parts_.size()) {}

void SharedChannel::begin(const SharedUse& use) {
  for (const int rank : use.ranks)
    if (parts_[index(rank)] < 0)
      throw EnvironmentError(
          fmt::format("ranks {} and {} are on different hosts and cannot share memory to sum in", rank_, rank));
  pass(use.passed_at_start);
}

// The counter has the first page to itself, so that it shares no line with slots.
std::atomic<std::uint64_t>& SharedChannel::counter(int rank) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(block_->of(parts_[index(rank)]));
}

std::byte* SharedChannel::slot(int rank, std::int64_t use) const {
  return block_->of(parts_[index(rank)]) + kPage + index((uses_ + use) % kSlots) * kSlotBytes;
}

std::atomic<std::uint64_t>& SharedChannel::mark(int rank, std::int64_t use) const {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(slot(rank, use));
}

std::byte* SharedChannel::values(int rank, std::int64_t use, std::size_t offset, std::int64_t elems) const {
  const bool in_line = offset == 0 && elems <= kInline;
  return slot(rank, use) + (in_line ? sizeof(std::uint64_t) : kLine + offset);
}

void SharedChannel::complete(std::int64_t use) {
  mark(rank_, use).store(static_cast<std::uint64_t>(uses_ + use) + 1, std::memory_order_release);
}

bool SharedChannel::is_complete(int rank, std::int64_t use) const {
  return mark(rank, use).load(std::memory_order_acquire) > static_cast<std::uint64_t>(uses_ + use);
}

bool SharedChannel::reached(int rank, std::uint64_t count) {
  std::uint64_t& seen = seen_[index(rank)];
  if (seen < count) seen = counter(rank).load(std::memory_order_acquire);
  return seen >= count;
}

bool SharedChannel::has_passed(int rank, std::int64_t phase) {
  return reached(rank, phases_ + static_cast<std::uint64_t>(phase));
}

bool SharedChannel::has_read(int rank, std::int64_t use) {
  const Filled& last = filled(uses_ + use);
  return last.use == uses_ + use || reached(rank, last.freed);
}

void SharedChannel::fill(std::int64_t use, std::int64_t freed) {
  filled(uses_ + use) = {.use = uses_ + use, .freed = phases_ + static_cast<std::uint64_t>(freed)};
}

void SharedChannel::pass(std::int64_t phase) {
  const std::uint64_t passed = phases_ + static_cast<std::uint64_t>(phase);
  if (passed <= passed_) return;
  passed_ = passed;
  counter(rank_).store(passed, std::memory_order_release);
}

void SharedChannel::end(const SharedUse& use) {
  pass(use.phases);
  phases_ += static_cast<std::uint64_t>(use.phases);
  uses_ += use.uses;
}

}  // namespace echelon::inline comm
