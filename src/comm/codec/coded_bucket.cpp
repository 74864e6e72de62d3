// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/coded_bucket.hpp"

namespace echelon::inline comm {

void CodedBucket::begin_step(std::uint64_t key) {
  key_ = key;
  bytes_before_ = bytes_after_ = seconds_ = 0;
}

void CodedBucket::begin(void* buffer) {
  const ScopedTimer timer(seconds_);
  if (in_place() && codec().info().lossy) codec().round(buffer, elems_, residual_.empty() ? nullptr : residual_.data());
}

void CodedBucket::finish(void* buffer) {
  const ScopedTimer timer(seconds_);
  if (in_place() && codec().info().lossy) codec().round(buffer, elems_, nullptr);
}

std::size_t CodedBucket::encode(void* values, ElemRange range, bool sum, std::byte* wire) {
  const ScopedTimer timer(seconds_);
  float* residual = nullptr;
  if (!in_place() && sum && !sum_residual_.empty()) residual = sum_residual_.data() + (range.begin - owned_);
  if (!in_place() && !sum && !residual_.empty()) residual = residual_.data() + range.begin;
  const std::size_t bytes = codecs_.of(range).encode(
      {.values = values, .elems = range.elems(), .residual = residual, .key = key_of(sum), .first = range.begin}, wire);
  return count(range.elems(), bytes);
}

std::size_t CodedBucket::count(std::int64_t elems, std::size_t bytes) {
  bytes_before_ += static_cast<double>(elems) * static_cast<double>(codec().value_bytes());
  bytes_after_ += static_cast<double>(bytes);
  return bytes;
}

}  // namespace echelon::inline comm
