// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/device_bucket.hpp"

#include <cstring>

#include "base/check.hpp"

namespace echelon::inline comm {
namespace {

std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Returns the bucket, or on route direct each rank's part of it.
std::vector<DeviceCodecPart> parts_of(const Codec& codec, const AllreduceRequest& request) {
  std::vector<DeviceCodecPart> parts;
  const int count = codec.info().route == CodecRoute::direct ? request.ranks : 1;
  std::size_t at = whole_lines(sizeof(ResidualNorms));
  for (int r = 0; r < count; ++r) {
    const ElemRange range = even_part(request.elems, count, r);
    if (range.empty()) continue;
    parts.push_back({.begin = range.begin, .elems = range.elems(), .at = at, .bytes = codec.most_bytes(range.elems())});
    at += whole_lines(parts.back().bytes);
  }
  return parts;
}

std::size_t bytes_of(const std::vector<DeviceCodecPart>& parts) {
  return parts.empty() ? whole_lines(sizeof(ResidualNorms)) : parts.back().at + whole_lines(parts.back().bytes);
}

}  // namespace

std::shared_ptr<DeviceBucket> DeviceBucket::make(Device& device, std::unique_ptr<Codec> codec,
                                                 const AllreduceRequest& request, float* residual,
                                                 std::span<float> sum_residual) {
  const std::vector<DeviceCodecPart> parts = parts_of(*codec, request);
  auto on_device = device.make_codec({.name = std::string(codec->info().name),
                                      .ranks = request.ranks,
                                      .chosen = codec->chosen(request.elems),
                                      .parts = parts,
                                      .blocks = codec->blocks(request.elems)});
  if (!on_device) return nullptr;
  return std::make_shared<DeviceBucket>(device, std::move(on_device), parts, std::move(codec), request, residual,
                                        sum_residual);
}

DeviceBucket::DeviceBucket(Device& device, std::unique_ptr<DeviceCodec> on_device, std::vector<DeviceCodecPart> parts,
                           std::unique_ptr<Codec> of_bucket, const AllreduceRequest& request, float* residual,
                           std::span<float> sum_residual)
    : CodedBucket(std::move(of_bucket), request.elems, {}, sum_residual,
                  even_part(request.elems, request.ranks, request.rank).begin),
      device_(device),
      on_device_(std::move(on_device)),
      parts_(std::move(parts)),
      own_(even_part(request.elems, request.ranks, request.rank)),
      residual_(residual),
      encoded_(device.allocate_host(bytes_of(parts_))) {
  const std::size_t one = whole_lines(codec().most_bytes(request.elems));
  const auto ranks = static_cast<std::size_t>(request.ranks);
  received_ = device.allocate_host(route() == CodecRoute::gather ? ranks * one : bytes_of(parts_));
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
    for (const DeviceCodecPart& part : parts_)
      on_device_->decode(received_.bytes_at(part.at), part.bytes, gradients + part.begin, part.elems);
    return;
  }
  const std::size_t one = whole_lines(codec().most_bytes(elems()));
  for (std::size_t i = 0; i < received_bytes_.size(); ++i)
    if (i == 0)
      on_device_->decode(received_.bytes_at(0), received_bytes_[0], gradients, elems());
    else
      on_device_->decode_add(received_.bytes_at(i * one), received_bytes_[i], gradients, elems());
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
    return count(range.elems(), codec().to_wire(encoded_.bytes_at(part.at), part.elems, residual_norms().most, wire));
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
