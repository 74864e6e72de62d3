// SPDX-License-Identifier: Apache-2.0
// Codecs on a device whose memory the host cannot access: gradients and residuals (f32) stay there, and messages are
// copied to and from the host.
//
// The messages are those of comm/codec, with the indices of sparse ones in index coding "raw". Each bucket has a codec
// object and is divided into parts with one message each: the whole bucket, or the range that each rank owns. The
// device's thread makes all calls; they enqueue work on the device's stream and return without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline device {

// Values of a part that are encoded together (onebit).
struct DeviceCodecBlock {
  std::int64_t begin = 0;  // in the part
  std::int64_t elems = 0;
  std::int64_t at = 0;  // offset in the part's message, a multiple of 4
  bool coded = true;    // false: the values are not encoded
};

struct DeviceCodecPart {
  std::int64_t begin = 0;  // in the bucket
  std::int64_t elems = 0;
  std::size_t at = 0;     // offset of the message in host memory, a multiple of 64, behind the norms
  std::size_t bytes = 0;  // longest possible message
  std::vector<DeviceCodecBlock> blocks = {};  // in rising order; only onebit has any
};

struct DeviceCodecSpec {
  std::string name;
  int ranks = 1;
  std::int64_t chosen = 0;  // topk: number of encoded values; threshold: number of values above the first tau
  std::vector<DeviceCodecPart> parts;
};

// Norms of a bucket's residual after an encoding, stored in front of the messages.
struct ResidualNorms {
  double squares = 0;  // sum of squares
  double most = 0;     // largest magnitude
};

struct DeviceEncoding {
  const float* values = nullptr;
  float* residual = nullptr;  // in: added to the values first; out: the encoding error
  std::uint64_t key = 0;      // key of the random draws, which are numbered by index in the bucket
  float tau = 0;              // threshold; 0: the magnitude that `chosen` values exceed
};

class DeviceCodec {
 public:
  virtual ~DeviceCodec() = default;
  // All host memory is from Device::allocate_host, and must not be changed until the stream has passed the call.
  // `encode` writes the message of every part of the bucket to host + part.at, and ResidualNorms in front.
  virtual void encode(const DeviceEncoding& bucket, std::byte* host) = 0;
  // Decodes a message of part spec.parts[part] into `values`, those of the part, or adds it to them.
  virtual void decode(std::size_t part, const std::byte* message, std::size_t bytes, float* values) = 0;
  virtual void decode_add(std::size_t part, const std::byte* message, std::size_t bytes, float* values) = 0;
};

}  // namespace echelon::inline device
