// A coded bucket whose gradients and residual stay on a device that the host cannot reach: the device encodes its
// replica's gradients and decodes the messages of all replicas; only messages cross between device and host.
//
//   route any      the host sums the decoded messages, as plans do; the sum over all ranks goes back as a message
//   route direct   messages go to the owners of parts as they are; an owner sums and encodes its part on the host;
//                  the messages of the owners go back as they are
//   route gather   the messages of all ranks go back as they are; the host codes raw indices and decodes them again
//
// A step: begin_step, encode_gradients (enqueued), the plan once the event has passed, decode_gradients (enqueued).
//
// Memory: pinned host memory of the bucket's messages, twice; on route gather 1 + k times.
#pragma once

#include "comm/codec/coded_bucket.hpp"
#include "device/device.hpp"

namespace echelon::inline comm {

class DeviceBucket final : public CodedBucket {
 public:
  // Null where the device has no body of this codec: then a CodedBucket on host memory is used. Throws MemoryError.
  // `residual` is the device's, of the bucket; `sum_residual` is the host's, as CodedBucket has it.
  static std::shared_ptr<DeviceBucket> make(Device& device, std::unique_ptr<Codec> codec,
                                            const AllreduceRequest& request, float* residual,
                                            std::span<float> sum_residual);
  DeviceBucket(Device& device, std::unique_ptr<DeviceCodec> on_device, std::vector<DeviceCodecPart> parts,
               std::unique_ptr<Codec> codec, const AllreduceRequest& request, float* residual,
               std::span<float> sum_residual);

  // On the compute thread; `gradients` is device memory, (elems) f32. Both only enqueue work on the device and return.
  // The event has passed once the message is in host memory. decode_gradients comes after the plan is done.
  std::unique_ptr<Event> encode_gradients(const float* gradients);
  void decode_gradients(float* gradients);
  // Sum of squares and largest magnitude of this replica's residual, once the event has passed.
  const ResidualNorms& residual_norms() const { return *static_cast<const ResidualNorms*>(encoded_.data()); }

  // On the engine's thread.
  void begin(void* buffer) override;
  void finish(void* buffer) override;
  std::size_t encode(void* values, ElemRange range, bool sum, std::byte* wire) override;
  void decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;
  void decode_add(const std::byte* wire, std::size_t bytes, void* values, ElemRange range) override;

 private:
  CodecRoute route() const { return codec().info().route; }
  const DeviceCodecPart& part_of(ElemRange range) const;
  void keep(const std::byte* wire, std::size_t bytes);

  Device& device_;
  std::unique_ptr<DeviceCodec> on_device_;
  std::vector<DeviceCodecPart> parts_;
  ElemRange own_;
  float* residual_;
  Memory encoded_;                           // by this replica, as the device writes it
  Memory received_;                          // of all: laid out as encoded_, or one message of the bucket for each rank
  std::vector<std::size_t> received_bytes_;  // route gather: of the messages so far
};

}  // namespace echelon::inline comm
