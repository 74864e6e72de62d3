#include "h5/read_attributes.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"
#include "h5/handle.hpp"

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
  if (!has_attribute(file, name)) fail(path, name, "is missing");
  Attribute attribute;
  attribute.handle = Handle(H5Aopen(file, std::string(name).c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute.handle.ok()) fail(path, name, "cannot be opened: " + reason());
  attribute.type = Handle(H5Aget_type(attribute.handle.id()), H5Tclose);
  attribute.space = Handle(H5Aget_space(attribute.handle.id()), H5Sclose);
  const hssize_t elems = attribute.space.ok() ? H5Sget_simple_extent_npoints(attribute.space.id()) : -1;
  if (!attribute.type.ok() || elems < 0) fail(path, name, "cannot be read: " + reason());
  attribute.elems = static_cast<std::size_t>(elems);
  return attribute;
}

bool is_number(const Attribute& attribute) {
  const H5T_class_t kind = H5Tget_class(attribute.type.id());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

std::vector<std::string> read_variable_texts(const Attribute& attribute, hid_t memory, const std::string& path,
                                             std::string_view name) {
  std::vector<char*> pointers(attribute.elems, nullptr);
  if (H5Aread(attribute.handle.id(), memory, pointers.data()) < 0) fail(path, name, "cannot be read: " + reason());
  std::vector<std::string> texts;
  for (const char* text : pointers) texts.emplace_back(text == nullptr ? "" : text);
  H5Dvlen_reclaim(memory, attribute.space.id(), H5P_DEFAULT, pointers.data());
  return texts;
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

bool has_attribute(hid_t file, std::string_view name) { return H5Aexists(file, std::string(name).c_str()) > 0; }

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
  if (attribute.elems != 1) fail(path, name, fmt::format("must be one integer, is {} of them", attribute.elems));
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
  const Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(memory.id(), H5T_VARIABLE);
  H5Tset_cset(memory.id(), H5Tget_cset(attribute.type.id()));
  return read_variable_texts(attribute, memory.id(), path, name);
}

}  // namespace echelon::h5
