// SPDX-License-Identifier: Apache-2.0
#include "verify/stored.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/reference/reference.hpp"
#include "verify/halves.hpp"

namespace echelon::verify {
namespace {

template <class T>
Bytes packed(const std::vector<double>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <class T>
std::vector<double> unpacked(const Bytes& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

Bytes packed_halves(const std::vector<double>& values, DType dtype) {
  Bytes bytes(values.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_half(dtype, static_cast<float>(values[i]));
    std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return bytes;
}

std::vector<double> unpacked_halves(const Bytes& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    values[i] = static_cast<double>(from_half(dtype, half));
  }
  return values;
}

Bytes reordered(const Bytes& bytes, DType dtype, const Shape& shape, Layout from, Layout to) {
  if (from == to) return bytes;
  OpSpec spec{OpKind::reorder, dtype, ReorderDims{shape}, {from, to}};
  Bytes out(static_cast<std::size_t>(stored_elems(shape, to)) * size_of(dtype));
  const std::array<void*, 2> tensors = {const_cast<std::byte*>(bytes.data()), out.data()};
  OpArgs args;
  args.tensors = tensors.data();
  oracle().make(spec)->run(args);
  return out;
}

}  // namespace

Device& oracle() {
  thread_local const std::unique_ptr<Device> device = make_reference_device({});
  return *device;
}

std::vector<double> rounded(std::vector<double> values, DType dtype) {
  if (dtype == DType::f32)
    for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  if (is_half(dtype))
    for (double& value : values) value = from_half(dtype, to_half(dtype, static_cast<float>(value)));
  return values;
}

Bytes to_stored(const std::vector<double>& plain, DType dtype, const Shape& shape, Layout layout) {
  if (dtype == DType::i32) return packed<std::int32_t>(plain);
  if (is_half(dtype)) return packed_halves(unpacked<float>(to_stored(plain, DType::f32, shape, layout)), dtype);
  const Bytes bytes = dtype == DType::f64 ? packed<double>(plain) : packed<float>(plain);
  return reordered(bytes, dtype, shape, Layout::plain, layout);
}

std::vector<double> from_stored(const Bytes& stored, DType dtype, const Shape& shape, Layout layout) {
  if (dtype == DType::i32) return unpacked<std::int32_t>(stored);
  if (is_half(dtype)) return from_stored(packed<float>(unpacked_halves(stored, dtype)), DType::f32, shape, layout);
  const Bytes bytes = reordered(stored, dtype, shape, layout, Layout::plain);
  return dtype == DType::f64 ? unpacked<double>(bytes) : unpacked<float>(bytes);
}

Guarded::Guarded(Device& device, const Bytes& content, std::size_t offset)
    : device_(device),
      bytes_(content.size()),
      offset_(offset),
      memory_(device.allocate(content.size() + offset + 2 * kGuard, "test argument")) {
  Bytes image(memory_.bytes(), kMark);
  std::copy(content.begin(), content.end(), image.begin() + static_cast<std::ptrdiff_t>(kGuard + offset));
  device_.to_device(memory_.data(), image.data(), image.size());
}

Bytes Guarded::image() const {
  Bytes image(memory_.bytes());
  device_.to_host(image.data(), memory_.data(), image.size());
  return image;
}

Bytes Guarded::content() const {
  const Bytes all = image();
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(kGuard + offset_);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes_));
}

bool Guarded::guards_hold() const {
  const Bytes all = image();
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(kGuard + offset_);
  const auto is_mark = [](std::byte b) { return b == kMark; };
  return std::all_of(all.begin(), begin, is_mark) &&
         std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), all.end(), is_mark);
}

}  // namespace echelon::verify
