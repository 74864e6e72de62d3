// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/coded_bucket.hpp"

#include <limits>

namespace echelon::inline comm {

void CodedBucket::begin_step(std::uint64_t key) {
  key_ = key;
  bytes_before_ = bytes_after_ = seconds_ = 0;
}

void CodedBucket::begin(void* buffer) {
  const ScopedTimer timer(seconds_);
  if (in_place() && codec_->info().lossy) codec_->round(buffer, elems_, residual_.empty() ? nullptr : residual_.data());
}

void CodedBucket::finish(void* buffer) {
  const ScopedTimer timer(seconds_);
  if (in_place() && codec_->info().lossy) codec_->round(buffer, elems_, nullptr);
}

std::size_t CodedBucket::encode(void* values, ElemRange range, bool sum, std::byte* wire) {
  const ScopedTimer timer(seconds_);
  float* residual = nullptr;
  if (!in_place() && sum && !sum_residual_.empty()) residual = sum_residual_.data() + (range.begin - owned_);
  if (!in_place() && !sum && !residual_.empty()) residual = residual_.data() + range.begin;
  const std::size_t bytes = codec_->encode(
      {.values = values, .elems = range.elems(), .residual = residual, .key = key_of(sum), .first = range.begin}, wire);
  return count(range.elems(), bytes);
}

std::size_t CodedBucket::count(std::int64_t elems, std::size_t bytes) {
  bytes_before_ += static_cast<double>(elems) * static_cast<double>(codec_->value_bytes());
  bytes_after_ += static_cast<double>(bytes);
  return bytes;
}

double coded_bytes(const Codec& codec, std::string_view algorithm, const AllreduceRequest& request) {
  const std::int64_t k = request.ranks;
  if (k == 1 || request.elems == 0) return 0;
  if (!codec.exact_size()) return std::numeric_limits<double>::quiet_NaN();
  if (codec.info().route == CodecRoute::any)
    return static_cast<double>(codec.most_bytes(price_allreduce(algorithm, request).payload_elems));
  if (codec.info().route == CodecRoute::gather)
    return static_cast<double>(k * (k - 1)) * static_cast<double>(codec.most_bytes(request.elems));
  double parts = 0;
  for (int r = 0; r < request.ranks; ++r)
    parts += static_cast<double>(codec.most_bytes(even_part(request.elems, request.ranks, r).elems()));
  return 2 * static_cast<double>(k - 1) * parts;
}

}  // namespace echelon::inline comm
