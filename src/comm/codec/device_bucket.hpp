// A coded bucket whose gradients and residual stay on a device that the host cannot reach: the device encodes what its
// replica says and decodes what all said, messages are what crosses to the host and back.
//
//   route any      the host sums, as plans do, what the message says; all ranks' sum goes back as a message
//   route direct   messages go to the owners of parts as they are; an owner sums and encodes its part on the host, what
//                  owners say goes back as it is
//   route gather   everybody's messages go back as they are; the host turns raw places into coded ones and back
//
// A step: begin_step, say (enqueues the encoding), the plan once the event has passed, hear (enqueues the decoding).
#pragma once

#include "comm/codec/coded_bucket.hpp"
#include "device/device.hpp"

namespace echelon {

class DeviceBucket final : public CodedBucket {
 public:
  // Null where the device leaves this codec to the host. `residual` is the device's, of the bucket; `owed_sums` is the
  // host's, as CodedBucket has it.
  static std::shared_ptr<DeviceBucket> make(Device& device, std::unique_ptr<Codec> codec,
                                            const AllreduceRequest& request, float* residual,
                                            std::span<float> owed_sums);
  DeviceBucket(Device& device, std::unique_ptr<DeviceCodec> on_device, std::vector<DeviceCodecPart> parts,
               std::unique_ptr<Codec> codec, const AllreduceRequest& request, float* residual,
               std::span<float> owed_sums);

  // On the compute thread: `gradients` are the bucket's on the device.
  std::unique_ptr<Event> say(const float* gradients);
  void hear(float* gradients);
  // Of this replica's residual, once the event has passed.
  const OwedOnDevice& owed() const { return *static_cast<const OwedOnDevice*>(said_.data()); }

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
  Memory said_;                           // by this replica, as the device writes it
  Memory heard_;                          // of all: laid out as said_, or one message of the bucket for each rank
  std::vector<std::size_t> heard_bytes_;  // route gather: of the messages so far
};

}  // namespace echelon
