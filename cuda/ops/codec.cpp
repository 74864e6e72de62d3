// SPDX-License-Identifier: Apache-2.0
// Codecs on the device's stream. Messages are made in device memory with the host's layout and copied in one transfer;
// if only the device knows their length, a kernel writes them to the host's (pinned) memory.
#include <algorithm>
#include <cstring>

#include "cuda/check.hpp"
#include "cuda/kernels/codec.hpp"
#include "cuda/kernels/vector.hpp"
#include "cuda/make.hpp"

namespace echelon::cuda {
namespace {

class CudaCodec : public DeviceCodec {
 public:
  CudaCodec(const Context& context, const DeviceCodecSpec& spec)
      : context_(context),
        spec_(spec),
        messages_(context.allocate(spec.parts.back().at + spec.parts.back().bytes + 4, "codec messages")),
        partials_(context.allocate(2 * sizeof(double) * kReduceBlocks, "codec sums")) {
    for (const DeviceCodecPart& part : spec.parts) {
      elems_ += part.elems;
      longest_ = std::max(longest_, part.bytes);
    }
    received_ = context.allocate(longest_, "codec messages");
  }

  void encode(const DeviceEncoding& bucket, std::byte* host) override {
    context_.use();
    for (const DeviceCodecPart& part : spec_.parts) write(bucket, part, messages_.bytes_at(part.at));
    note_residual(bucket.residual);
    send(host);
    check_launch("encoding as " + spec_.name);
  }
  void decode(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    read_message(part, message, bytes, values, false);
  }
  void decode_add(std::size_t part, const std::byte* message, std::size_t bytes, float* values) override {
    read_message(part, message, bytes, values, true);
  }

 protected:
  virtual void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) = 0;
  // Decodes the message in heard(); `message` is the host's copy.
  virtual void read(const DeviceCodecPart& part, const std::byte* message, float* values, bool add) = 0;
  virtual void send(std::byte* host) {
    const std::size_t bytes = spec_.parts.back().at + spec_.parts.back().bytes;
    ECHELON_CUDA(cudaMemcpyAsync(host, messages_.data(), bytes, cudaMemcpyDeviceToHost, stream()));
  }

  cudaStream_t stream() const { return context_.stream(); }
  const DeviceCodecSpec& spec() const { return spec_; }
  const Context& context() const { return context_; }
  std::int64_t elems() const { return elems_; }
  const std::byte* heard() const { return received_.bytes_at(0); }
  std::byte* message(std::size_t at) const { return messages_.bytes_at(at); }

 private:
  void read_message(std::size_t part, const std::byte* message, std::size_t bytes, float* values, bool add) {
    context_.use();
    ECHELON_CUDA(cudaMemcpyAsync(received_.data(), message, bytes, cudaMemcpyHostToDevice, stream()));
    read(spec_.parts[part], message, values, add);
    check_launch("decoding of " + spec_.name);
  }

  // Writes the norms in front of the messages.
  void note_residual(const float* residual) {
    auto* squares = static_cast<double*>(partials_.data());
    auto* most = reinterpret_cast<std::uint64_t*>(squares + kReduceBlocks);
    const auto n = static_cast<std::size_t>(elems_);
    partial_sum_squares(residual, n, squares, stream());
    partial_max_abs(residual, n, most, stream());
    finish_residual_norms(squares, most, reinterpret_cast<ResidualNorms*>(messages_.data()), stream());
  }

  const Context& context_;
  DeviceCodecSpec spec_;
  std::int64_t elems_ = 0;
  std::size_t longest_ = 0;
  Memory messages_, received_, partials_;
};

class Cast final : public CudaCodec {
 public:
  Cast(const Context& context, const DeviceCodecSpec& made_for)
      : CudaCodec(context, made_for), bf16_(made_for.name == "bf16") {
    while (up_ < static_cast<float>(made_for.ranks)) up_ *= 2;
  }

 private:
  void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) override {
    cast_encode(bf16_, up_, bucket.values + part.begin, bucket.residual + part.begin, wire, part.elems, stream());
  }
  void read(const DeviceCodecPart& part, const std::byte*, float* values, bool add) override {
    cast_decode(bf16_, up_, heard(), values, part.elems, add, stream());
  }

  bool bf16_;
  float up_ = 1;
};

class Int8 final : public CudaCodec {
 public:
  using CudaCodec::CudaCodec;

 private:
  void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) override {
    int8_encode(bucket.key, part.begin, bucket.values + part.begin, bucket.residual + part.begin, wire, part.elems,
                stream());
  }
  void read(const DeviceCodecPart& part, const std::byte*, float* values, bool add) override {
    int8_decode(heard(), values, part.elems, add, stream());
  }
};

class OneBit final : public CudaCodec {
 public:
  OneBit(const Context& context, const DeviceCodecSpec& made_for) : CudaCodec(context, made_for) {
    std::vector<DeviceCodecBlock> all;
    for (const DeviceCodecPart& part : spec().parts) {
      first_.push_back(all.size());
      all.insert(all.end(), part.blocks.begin(), part.blocks.end());
    }
    blocks_ = context.allocate(all.size() * sizeof(DeviceCodecBlock), "codec blocks");
    ECHELON_CUDA(cudaMemcpyAsync(blocks_.data(), all.data(), blocks_.bytes(), cudaMemcpyHostToDevice, stream()));
    ECHELON_CUDA(cudaStreamSynchronize(stream()));
  }

 private:
  const DeviceCodecBlock* blocks_of(const DeviceCodecPart& part) const {
    const auto index = static_cast<std::size_t>(&part - spec().parts.data());
    return static_cast<const DeviceCodecBlock*>(blocks_.data()) + first_[index];
  }
  static std::int64_t count(const DeviceCodecPart& part) { return static_cast<std::int64_t>(part.blocks.size()); }
  void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) override {
    onebit_encode(blocks_of(part), count(part), bucket.values + part.begin, bucket.residual + part.begin, wire,
                  stream());
  }
  void read(const DeviceCodecPart& part, const std::byte*, float* values, bool add) override {
    onebit_decode(blocks_of(part), count(part), heard(), values, add, stream());
  }

  std::vector<std::size_t> first_;  // by part: its first block
  Memory blocks_;
};

class Sparse : public CudaCodec {
 public:
  Sparse(const Context& context, const DeviceCodecSpec& made_for)
      : CudaCodec(context, made_for),
        selection_(context.allocate(sizeof(Selection), "codec selection")),
        bins_(context.allocate(kSelectionBins * sizeof(std::uint32_t), "codec selection")),
        tiles_(context.allocate(static_cast<std::size_t>(selection_tiles(elems())) * sizeof(std::uint64_t),
                                "codec selection")) {}

 protected:
  SelectionMemory memory() const {
    return {static_cast<Selection*>(selection_.data()), static_cast<std::uint32_t*>(bins_.data()),
            static_cast<std::uint64_t*>(tiles_.data())};
  }
  void clear(float* values, std::int64_t n) const {
    ECHELON_CUDA(cudaMemsetAsync(values, 0, static_cast<std::size_t>(n) * sizeof(float), stream()));
  }

 private:
  Memory selection_, bins_, tiles_;
};

class TopK final : public Sparse {
 public:
  using Sparse::Sparse;

 private:
  void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) override {
    begin_selection(bucket.values, bucket.residual, part.elems, memory(), stream());
    select_largest(bucket.residual, part.elems, spec().chosen, memory(), stream());
    topk_encode(bucket.residual, wire, part.elems, spec().chosen, memory(), stream());
  }
  void read(const DeviceCodecPart& part, const std::byte*, float* values, bool add) override {
    if (!add) clear(values, part.elems);
    topk_add(heard(), values, spec().chosen, stream());
  }
};

class Threshold final : public Sparse {
 public:
  using Sparse::Sparse;

 private:
  // The head of comm/codec/threshold.cpp.
  struct Head {
    std::uint32_t count = 0;
    float tau = 0;
    std::uint8_t format = 0;
    std::uint8_t exception = 0;
    std::uint16_t none = 0;
  };
  static constexpr std::uint8_t kMap = 254;
  static constexpr std::size_t kException = 8;

  void write(const DeviceEncoding& bucket, const DeviceCodecPart& part, std::byte* wire) override {
    begin_selection(bucket.values, bucket.residual, part.elems, memory(), stream());
    if (!(bucket.tau > 0)) select_largest(bucket.residual, part.elems, spec().chosen, memory(), stream());
    select_above(bucket.tau, memory(), stream());
    threshold_encode(bucket.residual, wire, part.elems, memory(), stream());
  }
  void send(std::byte* host) override {
    const std::size_t at = spec().parts[0].at;
    copy_message(memory().selection, reinterpret_cast<const ResidualNorms*>(message(0)), message(at),
                 reinterpret_cast<ResidualNorms*>(host), host + at, stream());
  }
  void read(const DeviceCodecPart& part, const std::byte* message, float* values, bool add) override {
    if (!add) clear(values, part.elems);
    Head head;
    std::memcpy(&head, message, sizeof head);
    const std::byte* indices = heard() + sizeof head;
    if (head.exception != 0) {
      exception_add(indices, values, stream());
      indices += kException;
    }
    if (head.format == kMap)
      map_add(indices, head.tau, values, part.elems, stream());
    else
      entries_add(indices, head.count, head.tau, values, stream());
  }
};

}  // namespace

std::unique_ptr<DeviceCodec> make_codec(const Context& context, const DeviceCodecSpec& spec) {
  context.use();
  if (spec.name == "fp16" || spec.name == "bf16") return std::make_unique<Cast>(context, spec);
  if (spec.name == "int8") return std::make_unique<Int8>(context, spec);
  if (spec.name == "onebit") return std::make_unique<OneBit>(context, spec);
  if (spec.name == "topk") return std::make_unique<TopK>(context, spec);
  if (spec.name == "threshold") return std::make_unique<Threshold>(context, spec);
  return nullptr;
}

}  // namespace echelon::cuda
