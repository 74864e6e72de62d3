// SPDX-License-Identifier: Apache-2.0
#include "exchange/server/form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "base/spans.hpp"
#include "base/text.hpp"
#include "comm/codec/coded_rows.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"

namespace echelon::inline exchange {
namespace {

ElemRange both(ElemRange a, ElemRange b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

std::int64_t count_in(const std::vector<ElemRange>& statistics, ElemRange range) {
  std::int64_t n = 0;
  for (const ElemRange& all : statistics) n += std::max<std::int64_t>(0, both(all, range).elems());
  return n;
}

}  // namespace

std::vector<ElemRange> statistics_in(const ParameterSet& parameters, ArenaRange bucket) {
  std::vector<ElemRange> ranges;
  for (const Parameter& parameter : parameters.all())
    if (parameter.kind == ParameterKind::statistic && parameter.begin >= bucket.begin && parameter.end() <= bucket.end)
      ranges.push_back({parameter.begin - bucket.begin, parameter.end() - bucket.begin});
  return ranges;
}

std::string coded_text(const ExchangeConfig& config) {
  if (config.codec == kNoCodec.name) return "";
  const std::string start =
      config.codec_warmup_steps > 0 ? fmt::format(" from step {} on", count_text(config.codec_warmup_steps)) : "";
  return fmt::format(", coded as {}{}{}", config.codec, config.error_feedback ? "" : " without error feedback", start);
}

double coded_server_bytes(const ServerForm& form, const AllreduceRequest& request) {
  if (request.ranks == 1) return 0;
  if (!form.exact_codec()) return std::numeric_limits<double>::quiet_NaN();
  const Parts parts = server_parts(request);
  const int workers = server_workers(request);
  double bytes = 0;
  for (int r = 0; r < request.ranks; ++r) {
    const ElemRange part = parts[static_cast<std::size_t>(r)];
    if (part.empty()) continue;
    bytes += 2.0 * (workers - (r < workers ? 1 : 0)) * static_cast<double>(form.most_bytes(part));
  }
  return bytes;
}

ServerForm::ServerForm(std::int64_t elems, std::vector<Part> parts, std::vector<ElemRange> statistics,
                       std::span<float> residual)
    : elems_(elems), parts_(std::move(parts)), statistics_(std::move(statistics)), residual_(residual) {
  ECHELON_CHECK(!parts_.empty(), "a bucket that nobody serves");
}

std::unique_ptr<ServerForm> ServerForm::make(const ExchangeConfig& config, const ParameterSet& parameters, DType dtype,
                                             ArenaRange bucket, const Parts& parts, std::span<float> residual,
                                             bool pull) {
  const bool lossy = codec_info(config.codec).lossy;
  if (lossy && dtype != DType::f32)
    throw ConfigError(fmt::format("exchange.codec '{}' takes f32, these values are {}; 'lossless' takes both",
                                  config.codec, name_of(dtype)));
  std::vector<Part> coded;
  for (const ElemRange& part : parts) {
    if (part.empty()) continue;
    const ArenaRange range{bucket.begin + part.begin, bucket.begin + part.end};
    CodecOptions options = codec_options(config, dtype, coded_rows(parameters, range));
    if (pull) options.tau = 0;
    coded.push_back({part, make_codec(config.codec, options)});
  }
  return std::make_unique<ServerForm>(bucket.elems(), std::move(coded),
                                      lossy ? statistics_in(parameters, bucket) : std::vector<ElemRange>(), residual);
}

void ServerForm::begin_step(std::uint64_t key) { key_ = key; }

std::size_t ServerForm::most_bytes(std::int64_t n) const {
  std::size_t most = 0;
  for (const Part& part : parts_)
    if (part.range.elems() >= n) most = std::max(most, part.codec->most_bytes(part.range.elems()));
  return most + static_cast<std::size_t>(count({0, elems_})) * sizeof(float);
}

std::size_t ServerForm::most_bytes(ElemRange part) const {
  return codec_of(part).most_bytes(part.elems()) + static_cast<std::size_t>(count(part)) * sizeof(float);
}

std::size_t ServerForm::encode(void* values, ElemRange range, bool sum, std::byte* wire) {
  const SpanTimer timer(encoded_.seconds, SpanKind::encode);
  Codec& codec = codec_of(range);
  auto* singles = static_cast<float*>(values);  // `lossless` also takes f64, but then there are no statistics
  float* residual = residual_.empty() ? nullptr : residual_.data() + range.begin;
  keep(singles, range);
  const std::vector<float> statistics = kept_;
  std::fill(kept_.begin(), kept_.end(), 0.0f);
  put(singles, range);
  std::size_t bytes = codec.encode({.values = values,
                                    .elems = range.elems(),
                                    .residual = residual,
                                    .key = hash_combine(key_, sum ? 1 : 0),
                                    .first = range.begin},
                                   wire);
  if (residual) put(residual, range);
  kept_ = statistics;
  put(singles, range);
  if (!kept_.empty()) std::memcpy(wire + bytes, kept_.data(), kept_.size() * sizeof(float));
  bytes += kept_.size() * sizeof(float);
  const auto n = static_cast<double>(range.elems());
  encoded_.bytes_before += n * static_cast<double>(codec.value_bytes());
  encoded_.bytes_after += static_cast<double>(bytes);
  encoded_.values += n;
  encoded_.density += n * codec.density();
  encoded_.tau += n * codec.tau();
  return bytes;
}

void ServerForm::decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) {
  const SpanTimer timer(encoded_.seconds, SpanKind::decode);
  const std::size_t coded = coded_bytes(bytes, range);
  codec_of(range).decode(wire, coded, values, range.elems());
  kept_.resize((bytes - coded) / sizeof(float));
  if (kept_.empty()) return;
  std::memcpy(kept_.data(), wire + coded, bytes - coded);
  put(static_cast<float*>(values), range);
}

void ServerForm::decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) {
  const SpanTimer timer(encoded_.seconds, SpanKind::decode);
  const std::size_t coded = coded_bytes(bytes, range);
  keep(static_cast<float*>(values), range);
  codec_of(range).decode_add(wire, coded, values, range.elems());
  if (kept_.empty()) return;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    float value = 0;
    std::memcpy(&value, wire + coded + i * sizeof value, sizeof value);
    kept_[i] += value;
  }
  put(static_cast<float*>(values), range);
}

Codec& ServerForm::codec_of(ElemRange range) const {
  for (const Part& part : parts_)
    if (part.range == range) return *part.codec;
  ECHELON_CHECK(false, "[{}, {}) is not the part of any server", range.begin, range.end);
  return *parts_.front().codec;
}

void ServerForm::keep(float* values, ElemRange range) {
  kept_.clear();
  for (const ElemRange& all : statistics_)
    if (const ElemRange here = both(all, range); !here.empty())
      kept_.insert(kept_.end(), values + (here.begin - range.begin), values + (here.end - range.begin));
}

void ServerForm::put(float* values, ElemRange range) const {
  const float* from = kept_.data();
  for (const ElemRange& all : statistics_)
    if (const ElemRange here = both(all, range); !here.empty()) {
      std::copy_n(from, here.elems(), values + (here.begin - range.begin));
      from += here.elems();
    }
}

std::size_t ServerForm::coded_bytes(std::size_t bytes, ElemRange range) const {
  const std::size_t statistics = static_cast<std::size_t>(count(range)) * sizeof(float);
  ECHELON_CHECK_GE(bytes, statistics, "bytes of a coded message with statistics");
  return bytes - statistics;
}

std::int64_t ServerForm::count(ElemRange range) const { return count_in(statistics_, range); }

}  // namespace echelon::inline exchange
