// SPDX-License-Identifier: Apache-2.0
#include "h5/read_attributes.hpp"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "h5/handle.hpp"
#include "h5/heap_texts.hpp"

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
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
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
  if (!values.empty() && H5Aread(attribute.handle.id(), H5T_NATIVE_DOUBLE, values.data()) < 0)
    fail(path, name, "cannot be read: " + reason());
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

}  // namespace echelon::h5
