// SPDX-License-Identifier: Apache-2.0
#include "h5/read_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "h5/handle.hpp"
#include "h5/heap_texts.hpp"
#include "h5/numbers.hpp"

namespace echelon::h5 {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view name, const std::string& what) {
  throw DataError(fmt::format("{}: attribute '{}' {}", path, name, what));
}

struct Attribute {
  Handle handle, type, space;
  std::size_t elems = 0;
};

Attribute open(hid_t file, const std::string& path, std::string_view name) {
  if (!has_attribute(file, path, name)) fail(path, name, "is missing");
  Attribute attribute;
  attribute.handle = Handle(H5Aopen(file, std::string(name).c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute.handle.ok()) fail(path, name, "cannot be opened: " + reason());
  attribute.type = Handle(H5Aget_type(attribute.handle.id()), H5Tclose);
  attribute.space = Handle(H5Aget_space(attribute.handle.id()), H5Sclose);
  const hssize_t elems = attribute.space.ok() ? H5Sget_simple_extent_npoints(attribute.space.id()) : -1;
  if (!attribute.type.ok() || elems < 0) fail(path, name, "cannot be read: " + reason());
  std::error_code ignored;
  const auto file_bytes = static_cast<double>(std::filesystem::file_size(path, ignored));
  const double bytes = static_cast<double>(elems) * static_cast<double>(H5Tget_size(attribute.type.id()));
  if (bytes > file_bytes)
    fail(path, name,
         fmt::format("is damaged: its {} values are {:.4g} bytes, the file has {}", elems, bytes, file_bytes));
  attribute.elems = static_cast<std::size_t>(elems);
  return attribute;
}

bool is_number(const Attribute& attribute) {
  const H5T_class_t kind = H5Tget_class(attribute.type.id());
  return (kind == H5T_INTEGER || kind == H5T_FLOAT) && dtype_of_type(attribute.type.id());
}

// Locates the bytes with the library, but reads them without it.
std::vector<std::string> read_variable_texts(hid_t file, const Attribute& attribute, const std::string& path,
                                             std::string_view name) {
  H5O_info_t root{};
  hsize_t user_block = 0;
  std::size_t address_bytes = 0, length_bytes = 0;
  const Handle creation(H5Fget_create_plist(file), H5Pclose);
  if (H5Oget_info2(file, &root, H5O_INFO_BASIC) < 0 || H5Pget_userblock(creation.id(), &user_block) < 0 ||
      H5Pget_sizes(creation.id(), &address_bytes, &length_bytes) < 0)
    fail(path, name, "cannot be read: " + reason());
  if (user_block != 0 || address_bytes != 8 || length_bytes != 8)
    fail(path, name, "is text of variable length in a storage that cannot be checked; write it with a fixed length");
  return read_heap_texts(path, root.addr, name, attribute.elems, fmt::format("{}: attribute '{}'", path, name));
}

std::vector<std::string> read_fixed_texts(const Attribute& attribute, const std::string& path, std::string_view name) {
  const std::size_t width = H5Tget_size(attribute.type.id());
  const bool spaces = H5Tget_strpad(attribute.type.id()) == H5T_STR_SPACEPAD;
  std::vector<char> block(attribute.elems * width);
  if (H5Aread(attribute.handle.id(), attribute.type.id(), block.data()) < 0)
    fail(path, name, "cannot be read: " + reason());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < attribute.elems; ++i) {
    std::string text(block.data() + i * width, strnlen(block.data() + i * width, width));
    if (spaces) text.erase(text.find_last_not_of(' ') + 1);
    texts.push_back(std::move(text));
  }
  return texts;
}

// A member of a record, inside its bytes.
struct Member {
  std::size_t offset = 0, bytes = 0;
  bool is_text = false;
  std::optional<NumberType> number;

  std::string text(const char* record) const { return {record + offset, strnlen(record + offset, bytes)}; }
  std::int64_t integer(const char* record) const {
    double value = 0;
    convert_numbers(*number, record + offset, 1, &value, DType::f64);
    return static_cast<std::int64_t>(std::clamp(value, -0x1p53, 0x1p53));
  }
};

Member member_of(const Attribute& attribute, const char* name) {
  const int index = H5Tget_member_index(attribute.type.id(), name);
  if (index < 0) return {};
  const auto place = static_cast<unsigned>(index);
  const Handle type(H5Tget_member_type(attribute.type.id(), place), H5Tclose);
  Member member;
  member.offset = H5Tget_member_offset(attribute.type.id(), place);
  member.bytes = H5Tget_size(type.id());
  const std::size_t record = H5Tget_size(attribute.type.id());
  if (member.offset > record || member.bytes > record - member.offset) return {};
  member.is_text = H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0;
  if (H5Tget_class(type.id()) == H5T_INTEGER) member.number = number_type_of(type.id());
  return member;
}

}  // namespace

bool has_attribute(hid_t file, const std::string& path, std::string_view name) {
  const htri_t found = H5Aexists(file, std::string(name).c_str());
  if (found < 0) fail(path, name, "cannot be looked up: " + reason());
  return found > 0;
}

std::vector<double> read_doubles(hid_t file, const std::string& path, std::string_view name) {
  const Attribute attribute = open(file, path, name);
  if (!is_number(attribute)) fail(path, name, "must be numbers, is " + type_text(attribute.type.id()));
  std::vector<double> values(attribute.elems);
  if (values.empty()) return values;
  // In the file's own type where possible: the library's conversion of damaged types writes past its buffers.
  const std::optional<NumberType> number = number_type_of(attribute.type.id());
  std::vector<char> stored(number ? attribute.elems * static_cast<std::size_t>(number->bytes) : 0);
  const herr_t read = number ? H5Aread(attribute.handle.id(), attribute.type.id(), stored.data())
                             : H5Aread(attribute.handle.id(), H5T_NATIVE_DOUBLE, values.data());
  if (read < 0) fail(path, name, "cannot be read: " + reason());
  if (number) convert_numbers(*number, stored.data(), std::ssize(values), values.data(), DType::f64);
  return values;
}

std::int64_t read_int(hid_t file, const std::string& path, std::string_view name) {
  const Attribute attribute = open(file, path, name);
  if (H5Tget_class(attribute.type.id()) != H5T_INTEGER)
    fail(path, name, "must be an integer, is " + type_text(attribute.type.id()));
  if (attribute.elems != 1) fail(path, name, fmt::format("must be one integer, but has {}", attribute.elems));
  std::int64_t value = 0;
  if (H5Aread(attribute.handle.id(), H5T_NATIVE_INT64, &value) < 0) fail(path, name, "cannot be read: " + reason());
  return value;
}

std::vector<std::string> read_texts(hid_t file, const std::string& path, std::string_view name) {
  const Attribute attribute = open(file, path, name);
  if (H5Tget_class(attribute.type.id()) != H5T_STRING)
    fail(path, name, "must be text, is " + type_text(attribute.type.id()));
  if (attribute.elems == 0) return {};
  if (H5Tis_variable_str(attribute.type.id()) <= 0) return read_fixed_texts(attribute, path, name);
  return read_variable_texts(file, attribute, path, name);
}

std::vector<std::string> read_fixed_texts_of(hid_t file, const std::string& path, std::string_view name) {
  if (!has_attribute(file, path, name)) return {};
  const Attribute attribute = open(file, path, name);
  if (H5Tget_class(attribute.type.id()) != H5T_STRING || H5Tis_variable_str(attribute.type.id()) != 0) return {};
  return read_fixed_texts(attribute, path, name);
}

std::vector<NamedRows> read_named_rows(hid_t file, const std::string& path, std::string_view name) {
  if (!has_attribute(file, path, name)) return {};
  const Attribute attribute = open(file, path, name);
  if (H5Tget_class(attribute.type.id()) != H5T_COMPOUND) return {};
  const Member part = member_of(attribute, "split"), source = member_of(attribute, "source");
  const Member start = member_of(attribute, "start"), stop = member_of(attribute, "stop");
  const Member indices = member_of(attribute, "indices");  // a reference; zeros: none
  if (!part.is_text || !source.is_text || !start.number || !stop.number) return {};
  const std::size_t record = H5Tget_size(attribute.type.id());
  std::vector<char> block(attribute.elems * record);
  // In the file's own type: the library converts records whose members are damaged past their end.
  if (H5Aread(attribute.handle.id(), attribute.type.id(), block.data()) < 0)
    fail(path, name, "cannot be read: " + reason());
  std::vector<NamedRows> rows(attribute.elems);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* at = block.data() + i * record;
    rows[i] = {.part = part.text(at), .dataset = source.text(at), .first = start.integer(at), .end = stop.integer(at)};
    rows[i].indexed =
        std::any_of(at + indices.offset, at + indices.offset + indices.bytes, [](char b) { return b != 0; });
  }
  return rows;
}

}  // namespace echelon::h5
