// SPDX-License-Identifier: Apache-2.0
#include "device/arenas.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/checksum.hpp"
#include "base/hash_rng.hpp"
#include "device/orthogonal.hpp"

namespace echelon::inline device {
namespace {

// Calls body(local, global, elems) for each run of elements that is contiguous both in the slice and in the whole
// tensor; it gets the row-major indices of the run's first element, and its length.
template <class Body>
void for_each_run(const Parameter& p, Body&& body) {
  const int rank = p.shape.rank();
  int axis = rank;  // the run has all axes from here on
  std::int64_t run = 1;
  while (axis > 0 && (axis == rank || p.shape[axis] == p.global_shape[axis])) run *= p.shape[--axis];
  std::array<std::int64_t, Shape::kMaxRank> at{};
  const std::int64_t elems = p.elems();
  for (std::int64_t local = 0; local < elems; local += run) {
    std::int64_t global = 0;
    for (int i = 0; i < rank; ++i) global = global * p.global_shape[i] + p.offset[i] + at[static_cast<std::size_t>(i)];
    body(local, static_cast<std::uint64_t>(global), run);
    for (int i = axis; i-- > 0;) {
      if (++at[static_cast<std::size_t>(i)] < p.shape[i]) break;
      at[static_cast<std::size_t>(i)] = 0;
    }
  }
}

// `whole`: the whole tensor, if it cannot be drawn in parts.
template <class T>
void draw(const Init& init, const HashRng& rng, const std::vector<double>& whole, std::uint64_t first,
          std::span<T> values) {
  switch (init.kind) {
    case Init::Kind::constant: std::fill(values.begin(), values.end(), static_cast<T>(init.scale)); return;
    case Init::Kind::uniform:
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(init.scale * (2 * rng.uniform(first + i) - 1));
      return;
    case Init::Kind::normal:
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(init.scale * hash_normal(rng, first + i));
      return;
    case Init::Kind::orthogonal:
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(init.scale * whole[first + i]);
      return;
  }
}

std::size_t arena_bytes(std::int64_t elems, DType dtype) { return static_cast<std::size_t>(elems) * size_of(dtype); }

}  // namespace

Arenas::Arenas(Device& device, ParameterSet parameters, DType dtype)
    : device_(device),
      parameters_(std::move(parameters)),
      dtype_(dtype),
      weights_(device.allocate(arena_bytes(parameters_.elems(), dtype), "weights")),
      gradients_(device.allocate(arena_bytes(parameters_.elems(), dtype), "gradients")),
      frozen_(parameters_.frozen().empty()
                  ? Memory()
                  : device.allocate(arena_bytes(parameters_.frozen_elems(), dtype), "frozen weights")) {
  std::int64_t words = 0;
  for (const Parameter& p : parameters_.all()) {
    marks_begin_.push_back(p.sparse ? words : -1);
    if (p.sparse) words += row_words(p.shape[0]);
  }
  if (words > 0) marks_ = device.allocate(arena_bytes(words, DType::i32), "marks of rows");
}

void* Arenas::weights_at(std::int64_t elem) const { return weights_.bytes_at(arena_bytes(elem, dtype_)); }
void* Arenas::gradients_at(std::int64_t elem) const { return gradients_.bytes_at(arena_bytes(elem, dtype_)); }
void* Arenas::frozen_at(std::int64_t elem) const { return frozen_.bytes_at(arena_bytes(elem, dtype_)); }

Tensor Arenas::weight(int parameter) const {
  const Parameter& p = parameters_[parameter];
  return {p.frozen ? frozen_at(p.begin) : weights_at(p.begin), p.shape, dtype_, Layout::plain};
}

Tensor Arenas::gradient(int parameter) const {
  const Parameter& p = parameters_[parameter];
  ECHELON_CHECK(!p.frozen, "{} is frozen and has no gradient", p.name);
  return {gradients_at(p.begin), p.shape, dtype_, Layout::plain};
}

RowMarks Arenas::row_marks(int parameter) const {
  const Parameter& p = parameters_[parameter];
  ECHELON_CHECK(p.sparse, "the gradient of {} is dense", p.name);
  void* const words = marks_.bytes_at(arena_bytes(marks_begin_[static_cast<std::size_t>(parameter)], DType::i32));
  return {static_cast<std::uint32_t*>(words), p.shape[0], p.shape.row_elems()};
}

void Arenas::track_rows(bool on) { tracks_rows_ = on && device_.computes() && marks_.data(); }

void Arenas::clear_tables() {
  for (const Parameter& p : parameters_.all())
    if (p.sparse) device_.zero(gradients_at(p.begin), arena_bytes(p.elems(), dtype_));
  if (marks_.data()) device_.zero(marks_.data(), marks_.bytes());
}

void Arenas::initialise(std::uint64_t seed) {
  if (device_.on_host()) device_.synchronize();
  for (const Parameter& p : parameters_.with_frozen()) {
    const HashRng rng(seed, p.name);
    std::vector<double> whole;
    if (p.init.kind == Init::Kind::orthogonal) {
      const Shape stored = p.global_shape.folded(p.folded);
      whole = orthogonal_matrix(rng, stored[0], stored.row_elems());
    }
    with_float(dtype_, [&]<class T>(T) {
      void* data = p.frozen ? frozen_at(p.begin) : weights_at(p.begin);
      const auto count = static_cast<std::size_t>(p.elems());
      std::vector<T> staged(device_.on_host() ? 0 : count);
      const std::span<T> values(device_.on_host() ? static_cast<T*>(data) : staged.data(), count);
      for_each_run(p, [&](std::int64_t local, std::uint64_t global, std::int64_t elems) {
        draw(p.init, rng, whole, global,
             values.subspan(static_cast<std::size_t>(local), static_cast<std::size_t>(elems)));
      });
      if (!device_.on_host()) device_.to_device(data, staged.data(), count * sizeof(T));
    });
  }
  device_.zero(gradients_.data(), gradients_.bytes());
  clear_tables();
  touch();
}

std::uint64_t Arenas::checksum() const {
  const auto of = [&](const Memory& memory) {
    if (device_.on_host()) {
      device_.synchronize();
      return checksum64(memory.data(), memory.bytes());
    }
    std::vector<std::byte> host(memory.bytes());
    device_.to_host(host.data(), memory.data(), host.size());
    return checksum64(host.data(), host.size());
  };
  const std::uint64_t trained = of(weights_);
  return parameters_.frozen().empty() ? trained : hash_combine(trained, of(frozen_));
}

void Arenas::visit_state(StateVisitor& visitor) {
  visit_arena(visitor, "weights", device_, parameters_.all(), dtype_, weights_.data());
  visit_arena(visitor, "weights", device_, parameters_.frozen(), dtype_, frozen_.data());
  if (visitor.loading()) touch();
}

StateTensor whole_tensor(std::string_view name, void* data, DType dtype, const Parameter& parameter) {
  return {.name = name,
          .data = data,
          .dtype = dtype,
          .shape = parameter.shape,
          .placement = parameter.shape == parameter.global_shape ? Placement::replicated : Placement::slice,
          .global_shape = parameter.global_shape,
          .offset = parameter.offset,
          .folded = parameter.folded};
}

void visit_arena(StateVisitor& visitor, std::string_view prefix, Device& device,
                 const std::vector<Parameter>& parameters, DType dtype, void* arena,
                 const DescribeParameter& describe) {
  device.synchronize();
  std::vector<std::byte> host;
  for (const Parameter& p : parameters) {
    auto* data = static_cast<std::byte*>(arena) + arena_bytes(p.begin, dtype);
    const std::size_t bytes = arena_bytes(p.elems(), dtype);
    const std::string name = std::string(prefix) + "/" + p.name;
    if (!device.on_host()) {
      host.resize(bytes);
      device.to_host(host.data(), data, bytes);
    }
    visitor.tensor(describe(name, device.on_host() ? data : host.data(), dtype, p));
    if (visitor.loading() && !device.on_host()) device.to_device(data, host.data(), bytes);
  }
}

}  // namespace echelon::inline device
