// SPDX-License-Identifier: Apache-2.0
// The messages of a plan for one bucket of gradients, encoded by a codec with error feedback.
//
// A replica encodes the sum of its gradient and its residual; the encoding error becomes the new residual (error
// feedback). On routes `direct` and `gather` this happens as messages are encoded; the owner of a part keeps a second
// residual for the sum that it sends to all ranks. On route `any` each replica rounds its own gradient once, before the
// plan begins; partial sums in transit and the final sum are rounded to nearest without a residual, so that every rank
// holds the same representable values.
//
// The error of each message is added back in the next step, so that the sum over steps of the applied updates follows
// the sum of the gradients (Karimireddy et al.: Error feedback fixes SignSGD, ICML 2019).
//
// The compute thread calls begin_step before it submits the plan; the thread that drives the engine, or a helper of it
// (helped), makes all other calls. Both residuals are the caller's memory and outlive the bucket.
#pragma once

#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/hash_rng.hpp"
#include "comm/codec/part_codecs.hpp"
#include "comm/collective/wire_form.hpp"

namespace echelon::inline comm {

class CodedBucket : public WireForm {
 public:
  // `residual` covers the bucket, or is empty. `sum_residual` covers the part of the bucket that this rank owns, which
  // begins at `owned`; it is empty where sums are not encoded.
  CodedBucket(PartCodecs codecs, std::int64_t elems, std::span<float> residual, std::span<float> sum_residual,
              std::int64_t owned)
      : codecs_(std::move(codecs)), elems_(elems), residual_(residual), sum_residual_(sum_residual), owned_(owned) {}

  const PartCodecs& codecs() const { return codecs_; }
  Codec& codec() { return codecs_.front(); }  // the only one that has a state
  const Codec& codec() const { return codecs_.front(); }
  // `key` seeds the random draws; it is unique for each (rank, bucket, step), so that ranks round independently. Resets
  // the byte counts and seconds(). No plan may be in flight.
  void begin_step(std::uint64_t key);
  // Bytes of the values that this rank has encoded since begin_step, and of their messages. Valid once the plan is
  // done.
  double bytes_before() const { return bytes_before_; }
  double bytes_after() const { return bytes_after_; }
  // Time spent in encoding and decoding on the host since begin_step. Valid once the plan is done.
  double seconds() const { return seconds_; }

  std::string_view name() const override { return codec().info().name; }
  std::int64_t elems() const override { return elems_; }
  std::size_t most_bytes(std::int64_t n) const override { return codecs_.most_bytes(n); }
  bool exact_size() const override { return codecs_.exact_size(); }
  bool in_place() const override { return codecs_.route() == CodecRoute::any; }
  bool helped() const override { return !in_place(); }  // else the thread that drives also codes messages

  void begin(void* buffer) override;
  void finish(void* buffer) override;
  std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) override;
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override {
    const ScopedTimer timer(seconds_);
    codecs_.of(range).decode(wire, bytes, values, range.elems());
  }
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override {
    const ScopedTimer timer(seconds_);
    codecs_.of(range).decode_add(wire, bytes, values, range.elems());
  }

 protected:
  // The key of the draws of a message.
  std::uint64_t key_of(bool sum) const { return hash_combine(key_, sum ? 1 : 0); }
  std::size_t count(std::int64_t elems, std::size_t bytes);

 private:
  PartCodecs codecs_;
  std::int64_t elems_;
  std::span<float> residual_, sum_residual_;
  std::int64_t owned_;
  std::uint64_t key_ = 0;
  double bytes_before_ = 0, bytes_after_ = 0, seconds_ = 0;
};

}  // namespace echelon::inline comm
