// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_layout_device.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "base/hash_rng.hpp"
#include "device/host_device.hpp"
#include "device/reference/reference.hpp"
#include "tests/support/halves.hpp"

namespace echelon::test {
namespace {

constexpr std::array kLayouts = {Layout::plain, Layout::channels_last, Layout::blocked8, Layout::blocked16};

// Tells whether an op exists in halves. Losses do not, as on GPUs, and pools do not, so that images and sequences meet
// both dtypes.
bool in_halves(OpKind kind) {
  switch (kind) {
    case OpKind::loss_softmax_forward:
    case OpKind::loss_softmax_backward:
    case OpKind::loss_class_forward:
    case OpKind::loss_class_join:
    case OpKind::loss_class_backward:
    case OpKind::loss_softmax_part:
    case OpKind::loss_softmax_join:
    case OpKind::loss_softmax_part_backward:
    case OpKind::loss_values_forward:
    case OpKind::loss_values_backward:
    case OpKind::sequence_pool_forward:
    case OpKind::sequence_pool_backward:
    case OpKind::pool_forward:
    case OpKind::pool_backward: return false;
    default: return true;
  }
}

// Pools save memory whose content depends on layouts.
bool saves(OpKind kind) { return kind == OpKind::pool_forward || kind == OpKind::pool_backward; }

class RandomLayoutOp final : public Op {
 public:
  RandomLayoutOp(const OpSpec& spec, Device& reference) : infos_(signature(spec)), spec_(spec) {
    OpSpec plain = spec;
    plain.dtype = wide_of(spec.dtype);
    if (spec.kind != OpKind::reorder) plain.layouts.fill(Layout::plain);
    if (auto* d = std::get_if<ReorderDims>(&plain.dims); d && d->from) d->from = wide_of(*d->from);
    op_ = reference.make(plain);
    for (std::size_t a = 0; a < infos_.size(); ++a) {
      const DType dtype = wide_of(infos_[a].dtype);
      const bool lies_elsewhere = plain.layouts[a] != spec.layouts[a];
      if (!lies_elsewhere && dtype == infos_[a].dtype) continue;
      Moved moved;
      moved.argument = a;
      moved.dtype = infos_[a].dtype;
      const std::int64_t stored = stored_elems(infos_[a].shape, spec.layouts[a]);
      if (is_half(moved.dtype)) moved.wide.resize(static_cast<std::size_t>(stored));
      if (lies_elsewhere) {
        OpSpec reorder{.kind = OpKind::reorder, .dtype = dtype, .dims = ReorderDims{infos_[a].shape}};
        reorder.layouts[0] = spec.layouts[a];
        moved.unpack = reference.make(reorder);
        std::swap(reorder.layouts[0], reorder.layouts[1]);
        moved.pack = reference.make(reorder);
        moved.plain.resize(static_cast<std::size_t>(infos_[a].shape.elems()) * size_of(dtype));
      }
      moved_.push_back(std::move(moved));
    }
  }

  std::size_t saved_bytes() const override {
    return saves(spec_.kind) ? padded_saved() + sizeof(Stamp) : op_->saved_bytes();
  }
  std::size_t scratch_bytes() const override { return op_->scratch_bytes(); }
  std::string implementation() const override { return "random_layout"; }

  void run(const OpArgs& args) override {
    std::array<void*, kMaxArgs> tensors{};
    for (std::size_t a = 0; a < infos_.size(); ++a) tensors[a] = args.tensors[a];
    for (Moved& moved : moved_) {
      const std::size_t a = moved.argument;
      const bool read = infos_[a].role == ArgRole::input || (args.accumulate >> a & 1U) != 0;
      tensors[a] = moved.memory();
      if (read) moved.fetch(args.tensors[a]);
    }
    OpArgs plain = args;
    plain.tensors = tensors.data();
    check_stamp(args);
    op_->run(plain);
    for (Moved& moved : moved_)
      if (infos_[moved.argument].role == ArgRole::output) moved.store(args.tensors[moved.argument]);
  }

 private:
  // An argument in another layout or in halves, with its copy for the reference.
  struct Moved {
    std::size_t argument = 0;
    DType dtype = DType::f32;
    std::unique_ptr<Op> unpack, pack;
    std::vector<std::byte> plain;
    std::vector<float> wide;  // for halves: their values in f32, in the argument's layout

    void* memory() { return unpack ? static_cast<void*>(plain.data()) : wide.data(); }
    void fetch(void* from) {
      const auto* halves = static_cast<const std::uint16_t*>(from);
      for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = from_half(dtype, halves[i]);
      if (unpack) move(*unpack, wide.empty() ? from : wide.data(), plain.data());
    }
    void store(void* to) {
      if (pack) move(*pack, plain.data(), wide.empty() ? to : wide.data());
      auto* halves = static_cast<std::uint16_t*>(to);
      for (std::size_t i = 0; i < wide.size(); ++i) halves[i] = to_half(dtype, wide[i]);
    }
  };
  struct Stamp {
    Layout x, y;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  std::size_t padded_saved() const { return (op_->saved_bytes() + 63) / 64 * 64; }

  static void move(Op& reorder, void* from, void* to) {
    void* both[] = {from, to};
    OpArgs args;
    args.tensors = both;
    reorder.run(args);
  }

  void check_stamp(const OpArgs& args) const {
    if (!saves(spec_.kind)) return;
    std::byte* at = static_cast<std::byte*>(args.saved) + padded_saved();
    const bool forward = spec_.kind == OpKind::pool_forward;
    const Stamp mine = forward ? Stamp{spec_.layouts[0], spec_.layouts[1]} : Stamp{spec_.layouts[1], spec_.layouts[0]};
    if (forward) {
      std::memcpy(at, &mine, sizeof(mine));
      return;
    }
    Stamp theirs;
    std::memcpy(&theirs, at, sizeof(theirs));
    ECHELON_CHECK(mine == theirs, "{} has other layouts than its forward twin", spec_.text());
  }

  std::vector<ArgInfo> infos_;
  OpSpec spec_;
  std::unique_ptr<Op> op_;
  std::vector<Moved> moved_;
};

class RandomLayoutDevice final : public HostDevice {
 public:
  explicit RandomLayoutDevice(std::uint64_t seed)
      : HostDevice({}), rng_(seed, "layouts"), reference_(make_reference_device({})) {}

  std::string_view name() const override { return "random_layout"; }
  std::string describe() const override { return "reference behind random layouts"; }
  bool supports(DType dtype) const override { return reference_->supports(wide_of(dtype)); }
  bool has(OpKind kind, DType dtype) const override { return !is_half(dtype) || in_halves(kind); }

  LayoutWish layouts(const OpSpec& spec) const override {
    LayoutWish wish{spec.layouts};
    const std::vector<ArgInfo> infos = signature(spec);
    for (std::size_t a = 0; a < infos.size(); ++a)
      if (infos[a].movable && spec.kind != OpKind::pool_backward)  // which keeps the layout of its forward twin
        wish.layouts[a] = kLayouts[rng_.below(draws_++, kLayouts.size())];
    wished_ = wish;
    return wish;
  }

  std::unique_ptr<Op> make(const OpSpec& spec) override {
    const std::vector<ArgInfo> infos = signature(spec);
    for (std::size_t a = 0; a < infos.size(); ++a)
      ECHELON_CHECK(infos[a].movable || spec.layouts[a] == Layout::plain, "{} of {}", infos[a].name, spec.text());
    const bool free = spec.kind == OpKind::reorder || spec.kind == OpKind::add;
    ECHELON_CHECK(free || spec.layouts == wished_.layouts, "{} has layouts that nobody wished for", spec.text());
    return std::make_unique<RandomLayoutOp>(spec, *reference_);
  }

 private:
  HashRng rng_;
  mutable std::uint64_t draws_ = 0;
  mutable LayoutWish wished_;
  std::unique_ptr<Device> reference_;
};

}  // namespace

std::unique_ptr<Device> make_random_layout_device(std::uint64_t seed) {
  return std::make_unique<RandomLayoutDevice>(seed);
}

}  // namespace echelon::test
