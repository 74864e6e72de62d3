// SPDX-License-Identifier: Apache-2.0
#include "device/upload.hpp"

#include <cstring>

#include "base/check.hpp"

namespace echelon::inline device {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kMostTensors = 8;  // tensors of a micro-batch: samples, labels, weights, ids, lengths, target

}  // namespace

Upload::Upload(Device& device, std::size_t bytes) : device_(device) {
  if (device.on_host()) return;
  queue_ = device.make_copy_queue(kSlots);
  ECHELON_CHECK(queue_ != nullptr, "device {} has no copy queue", device.name());
  for (Slot& slot : slots_) {
    slot.host = device.allocate_host(bytes + kMostTensors * kAlignment);
    slot.device = device.allocate(bytes + kMostTensors * kAlignment, "uploads of batches");
  }
  pieces_.reserve(kMostTensors);
}

void Upload::begin() {
  if (!queue_) return;
  slot_ = (slot_ + 1) % kSlots;
  used_ = 0;
  pieces_.clear();
  queue_->begin(slot_);
}

void Upload::put(void* dst, const void* src, std::size_t bytes) {
  if (!queue_) return device_.to_device(dst, src, bytes);
  ECHELON_CHECK_LE(used_ + bytes, slots_[slot_].host.bytes(), "the micro-batch is larger than the upload buffer");
  std::memcpy(slots_[slot_].host.bytes_at(used_), src, bytes);
  pieces_.push_back({dst, used_, bytes});
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void Upload::end() {
  if (!queue_) return;
  const Slot& slot = slots_[slot_];
  queue_->copy(slot.device.data(), slot.host.data(), used_);
  queue_->end(slot_);
  for (const Piece& piece : pieces_) device_.copy(piece.dst, slot.device.bytes_at(piece.at), piece.bytes);
  queue_->release(slot_);
}

std::size_t Upload::device_bytes() const {
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.device.bytes();
  return bytes;
}

}  // namespace echelon::inline device
