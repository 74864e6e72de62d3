// SPDX-License-Identifier: Apache-2.0
// The coded messages of a parameter server (exchange.codec). A message holds one server's part of a bucket:
//
//   [coded values of the part] [its running statistics, uncoded, f32 each]
//
// Running statistics of batch norm are in the arenas but are not gradients: a lossy codec gets zeros in their place.
// The residual keeps what the codec leaves out; it is added to the values of the next message.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/codec/codec.hpp"
#include "comm/collective/halves.hpp"
#include "comm/collective/wire_form.hpp"
#include "config/schema.hpp"
#include "device/parameter.hpp"
#include "exchange/codec_tally.hpp"

namespace echelon::inline exchange {

// The ranges of running statistics in a bucket, in elements of the bucket.
std::vector<ElemRange> statistics_in(const ParameterSet& parameters, ArenaRange bucket);

// Returns ", coded as fp16 from step 100 on", or "" without a codec.
std::string coded_text(const ExchangeConfig& config);

class ServerForm final : public WireForm {
 public:
  // Each server's part of the bucket has its own codec, since some codecs have state. Ranges are in elements of the
  // bucket.
  struct Part {
    ElemRange range;
    std::unique_ptr<Codec> codec;
  };
  // `statistics` is empty without a lossy codec; `residual` is that of the bucket, or empty.
  ServerForm(std::int64_t elems, std::vector<Part> parts, std::vector<ElemRange> statistics, std::span<float> residual);
  // Makes the form that exchange.codec asks for, with all parts that are not empty. With `pull` it codes changes of
  // weights, whose magnitudes differ from those of gradients: `threshold` then adapts its own tau to exchange.density.
  // Throws ConfigError if codec and dtype cannot be combined.
  static std::unique_ptr<ServerForm> make(const ExchangeConfig& config, const ParameterSet& parameters, DType dtype,
                                          ArenaRange bucket, const Parts& parts, std::span<float> residual, bool pull);

  // `key` determines the random draws; it differs between ranks, buckets and steps.
  void begin_step(std::uint64_t key);
  // Totals of what this rank encoded and decoded since the last call. Not while messages are in flight.
  EncodedTotals take_encoded() { return std::exchange(encoded_, {}); }
  std::vector<Part>& parts() { return parts_; }

  std::string_view name() const override { return parts_.front().codec->info().name; }
  std::int64_t elems() const override { return elems_; }
  std::size_t most_bytes(std::int64_t n) const override;
  std::size_t most_bytes(ElemRange part) const;  // for this server's part
  bool exact_size() const override { return statistics_.empty() && parts_.front().codec->exact_size(); }
  bool exact_codec() const { return parts_.front().codec->exact_size(); }
  bool in_place() const override { return false; }

  void begin(void*) override {}
  void finish(void*) override {}
  std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) override;
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;

 private:
  Codec& codec_of(ElemRange range) const;
  // `keep` copies the statistics in a range of the bucket to `kept_`, `put` copies them back, `count` counts them.
  void keep(float* values, ElemRange range);
  void put(float* values, ElemRange range) const;
  std::int64_t count(ElemRange range) const;
  // The length of a message without its statistics. A check fails if the message is shorter than these.
  std::size_t coded_bytes(std::size_t bytes, ElemRange range) const;

  std::int64_t elems_;
  std::vector<Part> parts_;
  std::vector<ElemRange> statistics_;
  std::span<float> residual_;
  std::uint64_t key_ = 0;
  std::vector<float> kept_;
  EncodedTotals encoded_;
};

// The bytes that all ranks together send for a bucket, pushes and pulls; NaN if they depend on the values. `form` must
// have the parts of all servers.
double coded_server_bytes(const ServerForm& form, const AllreduceRequest& request);

}  // namespace echelon::inline exchange
