// SPDX-License-Identifier: Apache-2.0
#include "device/onednn/primitive.hpp"

#include "base/check.hpp"

namespace echelon::inline device::onednn {
namespace {

dnnl::reorder::primitive_desc reorder_desc(const Context& context, const dnnl::memory::desc& src,
                                           const dnnl::memory::desc& dst, bool add) {
  dnnl::primitive_attr attributes;
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return {context.engine, src, context.engine, dst, attributes};
}

}  // namespace

Primitive::Primitive(const Context& context, const dnnl::primitive& primitive,
                     std::initializer_list<std::pair<int, dnnl::memory::desc>> args)
    : primitive_(primitive), threads_(context.threads), stream_(context.stream.get()), bound_(args.size(), nullptr) {
  for (const auto& [arg, desc] : args) {
    const bool empty = desc.get_size() == 0;
    memories_.push_back(empty ? dnnl::memory{} : dnnl::memory(desc, context.engine, DNNL_MEMORY_NONE));
    if (!empty) args_.push_back({arg, memories_.back().get()});
  }
}

void Primitive::run(std::initializer_list<const void*> addresses) {
  ECHELON_CHECK_EQ(addresses.size(), memories_.size());
  claim_threads(threads_);
  std::size_t i = 0;
  for (const void* address : addresses) {
    if (address != bound_[i] && memories_[i]) {
      memories_[i].set_data_handle(const_cast<void*>(address));
      bound_[i] = address;
    }
    ++i;
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream_, static_cast<int>(args_.size()), args_.data()),
      "oneDNN could not execute a primitive");
}

Primitive make_reorder(const Context& context, const dnnl::memory::desc& src, const dnnl::memory::desc& dst, bool add) {
  return Primitive(context, dnnl::reorder(reorder_desc(context, src, dst, add)),
                   {{DNNL_ARG_FROM, src}, {DNNL_ARG_TO, dst}});
}

std::string reorder_implementation(const Context& context, const dnnl::memory::desc& src,
                                   const dnnl::memory::desc& dst) {
  return reorder_desc(context, src, dst, false).impl_info_str();
}

PackedWeights::PackedWeights(const Context& context, const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                             const Precision& precision) {
  const bool rounds = precision.rounds && !precision.halves();  // else the reorder rounds
  if (plain == packed && !rounds) return;
  packed_ = std::make_shared<Packed>();
  packed_->from = plain;
  packed_->to = packed;
  packed_->half = precision.half;
  packed_->threads = context.threads;
  if (rounds) packed_->rounded = context.device.allocate(plain.get_size(), "rounded weights");
  if (plain == packed) return;
  packed_->reorder = make_reorder(context, plain, packed);
  packed_->memory = context.device.allocate(packed.get_size(), "packed weights");
}

const void* PackedWeights::get(const void* plain, std::uint64_t version) {
  if (!packed_) return plain;
  Packed& packed = *packed_;
  if (plain != packed.source || version != packed.version) {
    const void* from = plain;
    if (auto* rounded = static_cast<float*>(packed.rounded.data())) {
      round_in_f32(static_cast<const float*>(plain), rounded,
                   static_cast<std::int64_t>(packed.rounded.bytes() / sizeof(float)), packed.threads, packed.half);
      from = rounded;
    }
    if (packed.reorder) packed.reorder.run({from, packed.memory.data()});
    packed.source = plain;
    packed.version = version;
  }
  return packed.reorder ? packed.memory.data() : packed.rounded.data();
}

void PackedWeights::share(const PackedWeights& other) {
  if (packed_ && other.packed_ && packed_->from == other.packed_->from && packed_->to == other.packed_->to &&
      packed_->rounded.bytes() == other.packed_->rounded.bytes())
    packed_ = other.packed_;
}

}  // namespace echelon::inline device::onednn
