// SPDX-License-Identifier: Apache-2.0
#include "tests/support/discrete_codec.hpp"

#include <cstring>

#include "comm/codec/codec.hpp"
#include "device/vector.hpp"

namespace echelon::test {
namespace {

class DiscreteCodec final : public DeviceCodec {
 public:
  DiscreteCodec(const DeviceCodecSpec& spec, std::function<void(void*, const void*, std::size_t)> late)
      : spec_(spec), late_(std::move(late)) {}

  void encode(const DeviceEncoding& bucket, std::byte* host) override {
    ResidualNorms residual_norms;
    messages_.assign(spec_.parts.back().at + spec_.parts.back().bytes, std::byte{0});
    for (const DeviceCodecPart& part : spec_.parts) {
      const auto n = static_cast<std::size_t>(part.elems);
      float* residual = bucket.residual + part.begin;
      std::vector<float> values(bucket.values + part.begin, bucket.values + part.begin + part.elems);
      codec(part, bucket.tau)
          ->encode({.values = values.data(),
                    .elems = part.elems,
                    .residual = residual,
                    .key = bucket.key,
                    .first = part.begin},
                   messages_.data() + part.at);
      residual_norms.squares += host_vector_ops().sum_squares(DType::f32, residual, n);
      residual_norms.most = std::max(residual_norms.most, host_vector_ops().max_abs(DType::f32, residual, n));
    }
    std::memcpy(messages_.data(), &residual_norms, sizeof residual_norms);
    late_(host, messages_.data(), messages_.size());
  }
  void decode(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    codec(spec_.parts[part], 0)->decode(message, bytes, values, spec_.parts[part].elems);
  }
  void decode_add(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    codec(spec_.parts[part], 0)->decode_add(message, bytes, values, spec_.parts[part].elems);
  }

 private:
  std::unique_ptr<Codec> codec(const DeviceCodecPart& part, float tau) const {
    const double density = (static_cast<double>(spec_.chosen) - 0.5) / static_cast<double>(part.elems);
    std::vector<CodedRun> rows;
    for (const DeviceCodecBlock& block : part.blocks) rows.push_back({block.elems, block.coded ? block.elems : 0});
    return make_codec(
        spec_.name,
        {.ranks = spec_.ranks, .density = density, .tau = tau, .index_coding = "raw", .rows = std::move(rows)});
  }

  DeviceCodecSpec spec_;
  std::function<void(void*, const void*, std::size_t)> late_;
  std::vector<std::byte> messages_;
};

}  // namespace

std::unique_ptr<DeviceCodec> make_discrete_codec(const DeviceCodecSpec& spec,
                                                 std::function<void(void*, const void*, std::size_t)> late) {
  if (!codec_info(spec.name).lossy) return nullptr;
  return std::make_unique<DiscreteCodec>(spec, std::move(late));
}

}  // namespace echelon::test
