// SPDX-License-Identifier: Apache-2.0
#include "h5/handle.hpp"

#include <fmt/format.h>

#include <vector>

#include "h5/numbers.hpp"

namespace echelon::h5 {
namespace {

// Descriptions on the thread's error stack, innermost first.
std::vector<std::string> descriptions() {
  std::vector<std::string> found;
  const H5E_walk2_t collect = [](unsigned, const H5E_error2_t* error, void* into) -> herr_t {
    if (error->desc != nullptr) static_cast<std::vector<std::string>*>(into)->emplace_back(error->desc);
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &found);
  return found;
}

// Whether the enumeration has no negative value; h5py stores bool as a signed 8-bit enumeration.
bool has_no_negative(hid_t enumeration, bool has_sign) {
  const int members = has_sign ? H5Tget_nmembers(enumeration) : 0;
  for (int i = 0; i < members; ++i) {
    signed char value = 0;
    if (H5Tget_member_value(enumeration, static_cast<unsigned>(i), &value) < 0 || value < 0) return false;
  }
  return true;
}

}  // namespace

void quiet_thread() {
  thread_local const bool quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(quiet);
}

std::string reason() {
  const std::vector<std::string> found = descriptions();
  constexpr std::string_view kMark = "error message = '";
  for (const std::string& text : found)
    if (const auto at = text.find(kMark); at != std::string::npos) {
      const auto begin = at + kMark.size();
      return text.substr(begin, text.find('\'', begin) - begin);
    }
  return found.empty() ? "no reason given" : found.front();
}

bool reason_has(std::string_view text) {
  for (const std::string& description : descriptions())
    if (description.find(text) != std::string::npos) return true;
  return false;
}

hid_t native_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return H5T_NATIVE_FLOAT;
    case DType::f64: return H5T_NATIVE_DOUBLE;
    case DType::i32: return H5T_NATIVE_INT32;
    case DType::u8: return H5T_NATIVE_UINT8;
    case DType::f16:
    case DType::bf16: break;  // exists only in the memory of a device
  }
  return -1;
}

std::optional<DType> dtype_of_type(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_ENUM) {
    const Handle base(H5Tget_super(type), H5Tclose);
    const bool byte = H5Tget_class(base.id()) == H5T_INTEGER && H5Tget_size(base.id()) == 1;
    if (byte && has_no_negative(type, H5Tget_sign(base.id()) == H5T_SGN_2)) return DType::u8;
    return dtype_of_type(base.id());
  }
  const std::size_t size = H5Tget_size(type);
  // The library's conversion of damaged types writes past its buffers.
  if (kind == H5T_FLOAT)
    return !number_type_of(type) ? std::nullopt : std::optional(size == 8 ? DType::f64 : DType::f32);
  if (kind != H5T_INTEGER || size > 8) return std::nullopt;
  const int offset = H5Tget_offset(type);
  if (offset < 0 || static_cast<std::size_t>(offset) + H5Tget_precision(type) > 8 * size) return std::nullopt;
  const bool has_sign = H5Tget_sign(type) == H5T_SGN_2;
  return !has_sign && size == 1 ? DType::u8 : DType::i32;
}

std::string type_text(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{} {}-bit {} integer", bits == 8 ? "an" : "a", bits,
                         H5Tget_sign(type) == H5T_SGN_2 ? "signed" : "unsigned");
    case H5T_FLOAT: return fmt::format("a {}-bit float", bits);
    case H5T_STRING: return "text";
    case H5T_COMPOUND: return "a compound type";
    case H5T_ENUM: return "an enumeration";
    case H5T_OPAQUE: return fmt::format("opaque rows of {} bytes", bits / 8);
    case H5T_ARRAY: return "arrays";
    case H5T_REFERENCE: return "references to other objects";
    case H5T_VLEN: return "rows of variable length, each value " + type_text(Handle(H5Tget_super(type), H5Tclose).id());
    default: return "a type that is not a number";
  }
}

Extents extents_of(const Shape& shape) {
  Extents extents{};
  for (int axis = 0; axis < shape.rank(); ++axis)
    extents[static_cast<std::size_t>(axis)] = static_cast<hsize_t>(shape[axis]);
  return extents;
}

Handle space_of(const Shape& shape) {
  if (shape.rank() == 0) return {H5Screate(H5S_SCALAR), H5Sclose};
  return {H5Screate_simple(shape.rank(), extents_of(shape).data(), nullptr), H5Sclose};
}

std::optional<Shape> shape_of_space(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || rank > Shape::kMaxRank) return std::nullopt;
  Extents extents{};
  if (rank > 0 && H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0) return std::nullopt;
  const std::vector<std::int64_t> wide(extents.begin(), extents.begin() + rank);
  return Shape(std::span<const std::int64_t>(wide));
}

std::optional<bool> path_exists(hid_t file, std::string_view name) {
  for (std::size_t end = 0; end != name.size();) {
    end = name.find('/', end + 1);
    if (end == std::string_view::npos) end = name.size();
    const htri_t found = H5Lexists(file, std::string(name.substr(0, end)).c_str(), H5P_DEFAULT);
    if (found < 0) return std::nullopt;
    if (found == 0) return false;
  }
  return !name.empty();
}

}  // namespace echelon::h5
