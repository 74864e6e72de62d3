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
  queue_ = device.make_copy_queue(kPlaces);
  ECHELON_CHECK(queue_ != nullptr, "device {} has no copy queue", device.name());
  for (Place& place : places_) {
    place.host = device.allocate_host(bytes + kMostTensors * kAlignment);
    place.device = device.allocate(bytes + kMostTensors * kAlignment, "uploads of batches");
  }
  pieces_.reserve(kMostTensors);
}

void Upload::begin() {
  if (!queue_) return;
  place_ = (place_ + 1) % kPlaces;
  used_ = 0;
  pieces_.clear();
  queue_->begin(place_);
}

void Upload::put(void* dst, const void* src, std::size_t bytes) {
  if (!queue_) return device_.to_device(dst, src, bytes);
  ECHELON_CHECK_LE(used_ + bytes, places_[place_].host.bytes(), "the micro-batch is larger than the upload buffer");
  std::memcpy(places_[place_].host.bytes_at(used_), src, bytes);
  pieces_.push_back({dst, used_, bytes});
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void Upload::end() {
  if (!queue_) return;
  const Place& place = places_[place_];
  queue_->copy(place.device.data(), place.host.data(), used_);
  queue_->end(place_);
  for (const Piece& piece : pieces_) device_.copy(piece.dst, place.device.bytes_at(piece.at), piece.bytes);
  queue_->release(place_);
}

std::size_t Upload::device_bytes() const {
  std::size_t bytes = 0;
  for (const Place& place : places_) bytes += place.device.bytes();
  return bytes;
}

}  // namespace echelon::inline device
