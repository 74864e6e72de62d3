// What a parameter server's messages look like where exchange.codec writes them: each part of a bucket in one message.
//
//   [a part, coded] [its running statistics as they are: f32 each]
//
// Running statistics of batch norm lie in the arenas but are not gradients: a lossy codec sees zeros in their places.
// What the codec leaves out stays in the residual, which is added to the next message's values.
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

// Indices of running statistics in a bucket, as its elements.
std::vector<ElemRange> statistics_in(const ParameterSet& parameters, ArenaRange bucket);

// ", coded as fp16 from step 100 on"; "" where nothing is.
std::string coded_text(const ExchangeConfig& config);

class ServerForm final : public WireForm {
 public:
  // A codec for each server's part of the bucket, since some remember; places and parts are elements of the bucket.
  struct Part {
    ElemRange range;
    std::unique_ptr<Codec> codec;
  };
  // `statistics` are empty where nothing is lost; `residual` is of the bucket, or empty.
  ServerForm(std::int64_t elems, std::vector<Part> parts, std::vector<ElemRange> statistics, std::span<float> residual);
  // As exchange.codec asks, of the parts that are not empty. `pull`: of changes of weights, whose sizes have nothing to
  // do with those of gradients: threshold has a tau of their own, which adapts to exchange.density. ConfigError where
  // codec and dtype do not go together.
  static std::unique_ptr<ServerForm> make(const ExchangeConfig& config, const ParameterSet& parameters, DType dtype,
                                          ArenaRange bucket, const Parts& parts, std::span<float> residual, bool pull);

  // `key`: of the random draws of this rank, bucket and step.
  void begin_step(std::uint64_t key);
  // What this rank encoded since the last call, and the time of that and of decoding. Not while a plan is under way.
  EncodedTotals take_encoded() { return std::exchange(encoded_, {}); }
  std::vector<Part>& parts() { return parts_; }

  std::string_view name() const override { return parts_.front().codec->info().name; }
  std::int64_t elems() const override { return elems_; }
  std::size_t most_bytes(std::int64_t n) const override;
  std::size_t most_bytes(ElemRange part) const;  // of a server's part
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
  // The statistics of n values of the bucket: into `kept_`, and back; how many there are.
  void keep(float* values, ElemRange range);
  void put(float* values, ElemRange range) const;
  std::int64_t count(ElemRange range) const;
  // Of a message the bytes before its statistics; a failed check where it is shorter than those.
  std::size_t coded_bytes(std::size_t bytes, ElemRange range) const;

  std::int64_t elems_;
  std::vector<Part> parts_;
  std::vector<ElemRange> statistics_;
  std::span<float> residual_;
  std::uint64_t key_ = 0;
  std::vector<float> kept_;
  EncodedTotals encoded_;
};

// Bytes that all ranks together send for a bucket of `request`, pushed and pulled; NaN where they depend on the values.
// `form` has the parts of all servers.
double coded_server_bytes(const ServerForm& form, const AllreduceRequest& request);

}  // namespace echelon::inline exchange
