// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_queue.hpp"

#include <sched.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/intrinsics.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kSpins = 200;        // polls before the first system call, a few microseconds
constexpr double kYield_s = 2e-3;  // then the core is yielded after each poll
constexpr double kNote_s = 5e-3;   // then the watchdog is notified

std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Registers the wait with the watchdog during its lifetime.
class WaitNote {
 public:
  WaitNote(Engine& engine, const WaitView& wait) : engine_(engine), note_(engine.note_wait(wait)) {}
  ~WaitNote() { engine_.end_wait(note_); }
  WaitNote(const WaitNote&) = delete;

 private:
  Engine& engine_;
  std::uint64_t note_;
};

}  // namespace

void wait_for_peer(Engine& engine, const SharedBlock& block, const WaitView& wait, const std::function<bool()>& ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return;
    cpu_relax();
  }
  const double begin = engine.clock().now_s();
  std::optional<WaitNote> note;
  while (!ready()) {
    const double idle_s = engine.clock().now_s() - begin;
    if (idle_s < kYield_s) {
      sched_yield();
      continue;
    }
    block.check();
    if (idle_s > kNote_s && !note) {
      WaitView noted = wait;
      noted.since_s = begin;
      note.emplace(engine, noted);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(EngineOptions().nap_s(idle_s)));
  }
}

std::size_t SharedQueue::bytes(std::size_t buffers, std::size_t buffer_bytes) {
  return 2 * sizeof(SharedCounter) + buffers * in_lines(buffer_bytes);
}

SharedQueue::SharedQueue(std::byte* memory, std::size_t buffers, std::size_t buffer_bytes)
    : sent_(reinterpret_cast<SharedCounter*>(memory)),
      received_(sent_ + 1),
      first_(memory + 2 * sizeof(SharedCounter)),
      buffers_(buffers),
      stride_(in_lines(buffer_bytes)) {}

std::byte* SharedQueue::buffer(std::uint64_t number) const { return first_ + number % buffers_ * stride_; }

bool SharedQueue::may_fill() const { return mine_ - received_->value.load(std::memory_order_acquire) < buffers_; }
void SharedQueue::filled() { sent_->value.store(++mine_, std::memory_order_release); }
bool SharedQueue::may_take() const { return sent_->value.load(std::memory_order_acquire) > mine_; }
void SharedQueue::taken() { received_->value.store(++mine_, std::memory_order_release); }

std::size_t SharedRounds::bytes(std::size_t slot_bytes) { return sizeof(SharedCounter) + 2 * in_lines(slot_bytes); }

SharedRounds::SharedRounds(std::vector<std::byte*> parts, int rank, std::size_t slot_bytes)
    : parts_(std::move(parts)), rank_(rank), stride_(in_lines(slot_bytes)) {}

SharedCounter& SharedRounds::shown_by(int rank) const {
  return *reinterpret_cast<SharedCounter*>(parts_[static_cast<std::size_t>(rank)]);
}

std::byte* SharedRounds::slot(int rank) const {
  return parts_[static_cast<std::size_t>(rank)] + sizeof(SharedCounter) + round_ % 2 * stride_;
}

void SharedRounds::show() { shown_by(rank_).value.store(++shown_, std::memory_order_release); }

int SharedRounds::missing() const {
  for (int rank = 0; rank < static_cast<int>(parts_.size()); ++rank)
    if (shown_by(rank).value.load(std::memory_order_acquire) < shown_) return rank;
  return -1;
}

}  // namespace echelon::inline comm
