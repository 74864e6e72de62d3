// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/device_bucket.hpp"

#include <cstring>

#include "base/check.hpp"

namespace echelon::inline comm {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Returns the bucket, or on route direct each rank's part of it.
std::vector<DeviceCodecPart> parts_of(const PartCodecs& codecs, const AllreduceRequest& request) {
  std::vector<DeviceCodecPart> parts;
  const int count = codecs.route() == CodecRoute::direct ? request.ranks : 1;
  std::size_t at = whole_lines(sizeof(ResidualNorms));
  for (int r = 0; r < count; ++r) {
    const ElemRange range = even_part(request.elems, count, r);
    if (range.empty()) continue;
    const Codec& codec = codecs.of(range);
    parts.push_back({.begin = range.begin,
                     .elems = range.elems(),
                     .at = at,
                     .bytes = codec.most_bytes(range.elems()),
                     .blocks = codec.blocks(range.elems())});
    at += whole_lines(parts.back().bytes);
  }
  return parts;
}

std::size_t bytes_of(const std::vector<DeviceCodecPart>& parts) {
  return parts.empty() ? whole_lines(sizeof(ResidualNorms)) : parts.back().at + whole_lines(parts.back().bytes);
}

}  // namespace

std::shared_ptr<DeviceBucket> DeviceBucket::make(Device& device, PartCodecs codecs, const AllreduceRequest& request,
                                                 float* residual, std::span<float> sum_residual) {
  const std::vector<DeviceCodecPart> parts = parts_of(codecs, request);
  auto on_device = device.make_codec({.name = std::string(codecs.front().info().name),
                                      .ranks = request.ranks,
                                      .chosen = codecs.front().chosen(request.elems),
                                      .parts = parts});
  if (!on_device) return nullptr;
  return std::make_shared<DeviceBucket>(device, std::move(on_device), parts, std::move(codecs), request, residual,
                                        sum_residual);
}

DeviceBucket::DeviceBucket(Device& device, std::unique_ptr<DeviceCodec> on_device, std::vector<DeviceCodecPart> parts,
                           PartCodecs codecs, const AllreduceRequest& request, float* residual,
                           std::span<float> sum_residual)
    : CodedBucket(std::move(codecs), request.elems, {}, sum_residual,
                  even_part(request.elems, request.ranks, request.rank).begin),
      device_(device),
      on_device_(std::move(on_device)),
      parts_(std::move(parts)),
      own_(even_part(request.elems, request.ranks, request.rank)),
      residual_(residual),
      encoded_(device.allocate_host(bytes_of(parts_))) {
  const auto ranks = static_cast<std::size_t>(request.ranks);
  received_ = device.allocate_host(
      route() == CodecRoute::gather ? ranks * whole_lines(codec().most_bytes(request.elems)) : bytes_of(parts_));
  received_bytes_.reserve(ranks);
}

std::unique_ptr<Event> DeviceBucket::encode_gradients(const float* gradients) {
  on_device_->encode(
      {.values = gradients, .residual = residual_, .key = key_of(false), .tau = static_cast<float>(codec().tau())},
      encoded_.bytes_at(0));
  return device_.record();
}

void DeviceBucket::decode_gradients(float* gradients) {
  if (route() != CodecRoute::gather) {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      on_device_->decode(p, received_.bytes_at(parts_[p].at), parts_[p].bytes, gradients + parts_[p].begin);
    return;
  }
  const std::size_t one = whole_lines(codec().most_bytes(elems()));
  for (std::size_t i = 0; i < received_bytes_.size(); ++i)
    if (i == 0)
      on_device_->decode(0, received_.bytes_at(0), received_bytes_[0], gradients);
    else
      on_device_->decode_add(0, received_.bytes_at(i * one), received_bytes_[i], gradients);
}

void DeviceBucket::begin(void* buffer) {
  received_bytes_.clear();
  if (in_place()) codec().decode(encoded_.bytes_at(parts_[0].at), parts_[0].bytes, buffer, elems());
}

void DeviceBucket::finish(void* buffer) {
  if (in_place()) codec().encode({.values = buffer, .elems = elems()}, received_.bytes_at(parts_[0].at));
}

const DeviceCodecPart& DeviceBucket::part_of(ElemRange range) const {
  for (const DeviceCodecPart& part : parts_)
    if (part.begin == range.begin && part.elems == range.elems()) return part;
  ECHELON_CHECK(false, "[{}, {}) is not a part of the bucket", range.begin, range.end);
}

std::size_t DeviceBucket::encode(void* values, ElemRange range, bool sum, std::byte* wire) {
  if (in_place()) return CodedBucket::encode(values, range, sum, wire);
  const DeviceCodecPart& part = part_of(range);
  if (!sum)
    return count(range.elems(),
                 codecs().of(range).to_wire(encoded_.bytes_at(part.at), part.elems, residual_norms().most, wire));
  const std::size_t bytes = CodedBucket::encode(values, range, sum, wire);
  std::memcpy(received_.bytes_at(part.at), wire, bytes);
  return bytes;
}

void DeviceBucket::decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) {
  if (route() == CodecRoute::gather) return keep(wire, bytes);
  if (in_place() || range == own_) return CodedBucket::decode(wire, bytes, values, range);
  std::memcpy(received_.bytes_at(part_of(range).at), wire, bytes);
}

void DeviceBucket::decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) {
  if (route() == CodecRoute::gather) return keep(wire, bytes);
  CodedBucket::decode_add(wire, bytes, values, range);
}

// Stores the next of the messages that are added up.
void DeviceBucket::keep(const std::byte* wire, std::size_t bytes) {
  const std::size_t one = whole_lines(codec().most_bytes(elems()));
  received_bytes_.push_back(codec().from_wire(wire, bytes, elems(), received_.bytes_at(received_bytes_.size() * one)));
}

}  // namespace echelon::inline comm
