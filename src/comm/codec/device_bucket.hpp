// SPDX-License-Identifier: Apache-2.0
// A coded bucket whose gradients and residual stay on a device that the host cannot access. The device encodes its
// replica's gradients and decodes the messages of all replicas; only messages are copied between device and host.
//
//   route any      the host sums the decoded messages, as plans do, and returns the sum over all ranks as a message
//   route direct   messages go to the owners of parts unchanged; an owner sums and encodes its part on the host; the
//                  owners' messages are returned unchanged
//   route gather   the messages of all ranks are returned; the host only converts between raw and coded indices
//
// Sequence of a step: begin_step, encode_gradients (enqueued), the plan once the event has passed, decode_gradients
// (enqueued).
//
// Memory: pinned host memory for the bucket's messages, twice; on route gather 1 + k times.
#pragma once

#include "comm/codec/coded_bucket.hpp"
#include "device/device.hpp"

namespace echelon::inline comm {

class DeviceBucket final : public CodedBucket {
 public:
  // Returns null where the device does not implement this codec; the caller then uses a CodedBucket on host memory.
  // `residual` is device memory for the bucket; `sum_residual` is host memory as for CodedBucket. Throws MemoryError.
  static std::shared_ptr<DeviceBucket> make(Device& device, PartCodecs codecs, const AllreduceRequest& request,
                                            float* residual, std::span<float> sum_residual);
  DeviceBucket(Device& device, std::unique_ptr<DeviceCodec> on_device, std::vector<DeviceCodecPart> parts,
               PartCodecs codecs, const AllreduceRequest& request, float* residual, std::span<float> sum_residual);

  // The compute thread calls both; `gradients` is device memory, (elems) f32. Both only enqueue work on the device and
  // return. The event passes once the message is in host memory. decode_gradients is called after the plan is done.
  std::unique_ptr<Event> encode_gradients(const float* gradients);
  void decode_gradients(float* gradients);
  // Sum of squares and largest magnitude of this replica's residual; valid once the event has passed.
  const ResidualNorms& residual_norms() const { return *static_cast<const ResidualNorms*>(encoded_.data()); }

  // Called on the engine's thread.
  void begin(void* buffer) override;
  void finish(void* buffer) override;
  std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) override;
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;

 private:
  CodecRoute route() const { return codecs().route(); }
  const DeviceCodecPart& part_of(ElemRange range) const;
  void keep(const std::byte* wire, std::size_t bytes);

  Device& device_;
  std::unique_ptr<DeviceCodec> on_device_;
  std::vector<DeviceCodecPart> parts_;
  ElemRange own_;
  float* residual_;
  Memory encoded_;                           // message of this replica, as the device writes it
  Memory received_;                          // all messages: laid out as encoded_, or one per rank
  std::vector<std::size_t> received_bytes_;  // route gather: length of each message received so far
};

}  // namespace echelon::inline comm
