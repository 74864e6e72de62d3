#include "comm/shared_lane.hpp"

#include <immintrin.h>
#include <sched.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/clock.hpp"

namespace echelon {
namespace {

constexpr int kSpins = 200;        // looks before the first system call, a few microseconds
constexpr double kYield_s = 2e-3;  // then the core is given away after each look
constexpr double kNote_s = 5e-3;   // then the watchdog is told

std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Tells the watchdog for as long as it lives.
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
    _mm_pause();
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
      WaitView told = wait;
      told.since_s = begin;
      note.emplace(engine, told);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(EngineOptions().nap_s(idle_s)));
  }
}

std::size_t SharedLane::bytes(std::size_t boxes, std::size_t box_bytes) {
  return 2 * sizeof(SharedCounter) + boxes * in_lines(box_bytes);
}

SharedLane::SharedLane(std::byte* memory, std::size_t boxes, std::size_t box_bytes)
    : sent_(reinterpret_cast<SharedCounter*>(memory)),
      received_(sent_ + 1),
      first_(memory + 2 * sizeof(SharedCounter)),
      boxes_(boxes),
      stride_(in_lines(box_bytes)) {}

std::byte* SharedLane::box(std::uint64_t number) const { return first_ + number % boxes_ * stride_; }

bool SharedLane::may_fill() const { return mine_ - received_->value.load(std::memory_order_acquire) < boxes_; }
void SharedLane::filled() { sent_->value.store(++mine_, std::memory_order_release); }
bool SharedLane::may_take() const { return sent_->value.load(std::memory_order_acquire) > mine_; }
void SharedLane::taken() { received_->value.store(++mine_, std::memory_order_release); }

std::size_t SharedMeeting::bytes(std::size_t slot_bytes) { return sizeof(SharedCounter) + 2 * in_lines(slot_bytes); }

SharedMeeting::SharedMeeting(std::vector<std::byte*> parts, int rank, std::size_t slot_bytes)
    : parts_(std::move(parts)), rank_(rank), stride_(in_lines(slot_bytes)) {}

SharedCounter& SharedMeeting::shown_by(int rank) const {
  return *reinterpret_cast<SharedCounter*>(parts_[static_cast<std::size_t>(rank)]);
}

std::byte* SharedMeeting::slot(int rank) const {
  return parts_[static_cast<std::size_t>(rank)] + sizeof(SharedCounter) + meeting_ % 2 * stride_;
}

void SharedMeeting::show() { shown_by(rank_).value.store(++shown_, std::memory_order_release); }

int SharedMeeting::missing() const {
  for (int rank = 0; rank < static_cast<int>(parts_.size()); ++rank)
    if (shown_by(rank).value.load(std::memory_order_acquire) < shown_) return rank;
  return -1;
}

}  // namespace echelon
