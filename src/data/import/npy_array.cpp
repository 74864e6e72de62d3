// SPDX-License-Identifier: Apache-2.0
#include "data/import/npy_array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "data/import/archive.hpp"

namespace echelon::inline data {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::uint32_t kMostHeader = 1 << 20;
constexpr double kMostElems = 1e15;

}  // namespace

NpyArray::NpyArray(const std::string& input) : input_(input) {
  const std::size_t member = input.rfind(".npz:");
  if (member != std::string::npos)
    open_member(input.substr(0, member + 4), input.substr(member + 5));
  else if (input.ends_with(".npz"))
    open_member(input, "");
  else
    stream_.emplace(input);
  read_header();
}

void NpyArray::open_member(const std::string& archive, const std::string& name) {
  ArchiveReader reader(archive);
  std::vector<std::string> names;
  for (ArchiveMember member; reader.next(member);) {
    std::string array = member.name;
    if (array.ends_with(".npy")) array.resize(array.size() - 4);
    if (array == name) {
      content_ = reader.content();
      if (content_.size() == static_cast<std::size_t>(member.bytes) || member.bytes == 0) return;
      throw DataError(fmt::format("{}: is truncated in array '{}'", archive, name));
    }
    names.push_back(std::move(array));
  }
  if (names.empty()) throw DataError(fmt::format("{}: holds no array", archive));
  throw DataError(fmt::format("{}: {}; name one as {}:{} (it holds {})", archive,
                              name.empty() ? "holds several arrays" : unknown_name("array", name, names), archive,
                              names.front(), fmt::join(names, ", ")));
}

void NpyArray::fail(const std::string& what) const { throw DataError(fmt::format("{}: {}", input_, what)); }

void NpyArray::take(void* dst, std::size_t bytes, const std::string& what) {
  if (stream_) return stream_->read(dst, bytes, what);
  if (bytes > content_.size() - taken_)
    fail(
        fmt::format("ends at byte {}, in {} ({} of {} bytes)", content_.size(), what, content_.size() - taken_, bytes));
  std::memcpy(dst, content_.data() + taken_, bytes);
  taken_ += bytes;
}

// The text behind 'key': in the header, a Python dictionary of literals, up to the comma that ends the entry.
std::string NpyArray::value_of(const std::string& header, const std::string& key) const {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string::npos) fail(fmt::format("its header has no '{}': {}", key, header.substr(0, 200)));
  std::size_t begin = header.find_first_not_of(' ', at + key.size() + 3), end = begin;
  if (begin == std::string::npos) fail(fmt::format("its header ends after '{}'", key));
  for (int depth = 0; end < header.size() && (depth > 0 || (header[end] != ',' && header[end] != '}')); ++end)
    depth += header[end] == '(' || header[end] == '[' ? 1 : header[end] == ')' || header[end] == ']' ? -1 : 0;
  return header.substr(begin, end - begin);
}

void NpyArray::read_header() {
  char magic[8];
  take(magic, sizeof magic, "its magic number");
  if (std::string_view(magic, kNpyMagic.size()) != kNpyMagic)
    fail("is no array of NumPy: it does not begin with \\x93NUMPY");
  const int version = magic[6];
  if (version < 1 || version > 3) fail(fmt::format("has version {} of the format; 1 to 3 are known", version));
  std::uint8_t length_bytes[4] = {};
  take(length_bytes, version == 1 ? 2 : 4, "the length of its header");
  std::uint32_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | length_bytes[i];
  if (length > kMostHeader) fail(fmt::format("claims a header of {} bytes", length));
  std::string header(length, '\0');
  take(header.data(), header.size(), "its header");

  descr_ = value_of(header, "descr");
  if (descr_.size() < 5 || descr_.front() != '\'' || descr_.back() != '\'')
    fail(fmt::format("holds records or texts ({}), expected numbers", descr_.substr(0, 60)));
  descr_ = descr_.substr(1, descr_.size() - 2);
  const char order = descr_[0], kind = descr_[1];
  const std::string width = descr_.substr(2);
  const bool integer = kind == 'b' || kind == 'u' || kind == 'i';
  const bool known = integer ? width == "1" || (kind != 'b' && (width == "2" || width == "4" || width == "8"))
                             : kind == 'f' && (width == "2" || width == "4" || width == "8");
  if (!known || !std::strchr("<>|=", order))
    fail(fmt::format("holds values of type '{}', expected bool, integers of 8 to 64 or floats of 16 to 64 bits",
                     descr_));
  const bool little = order == '<' || (order != '>' && std::endian::native == std::endian::little);
  type_ = {.real = kind == 'f',
           .has_sign = kind == 'i' || kind == 'f',
           .swapped = little != (std::endian::native == std::endian::little),
           .bytes = width[0] - '0'};
  extents_.clear();
  const std::string shape = value_of(header, "shape");
  double elems = 1;
  for (const char* at = shape.data(); at < shape.data() + shape.size();) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(at, shape.data() + shape.size(), extent);
    if (error != std::errc()) {
      ++at;
      continue;
    }
    if (extent < 0) fail(fmt::format("has the shape {}", shape));
    extents_.push_back(extent);
    elems *= static_cast<double>(extent);
    at = end;
  }
  if (extents_.empty()) fail("is a single number, expected an array");
  if (elems > kMostElems) fail(fmt::format("claims the shape {}", shape));
  if (value_of(header, "fortran_order").starts_with("True") && extents_.size() > 1)
    fail("is stored in Fortran order; np.ascontiguousarray(array) makes one in C order");
  next_ = 0;
}

std::int64_t NpyArray::row_elems() const {
  std::int64_t elems = 1;
  for (std::size_t axis = 1; axis < extents_.size(); ++axis) elems *= extents_[axis];
  return elems;
}

std::string NpyArray::text() const { return fmt::format("{} ({})", descr_, fmt::join(extents_, ", ")); }

void NpyArray::rewind() {
  if (stream_) stream_->rewind();
  taken_ = 0;
  read_header();
}

void NpyArray::read(std::int64_t count, void* dst, DType to) {
  const std::int64_t elems = count * row_elems();
  std::vector<std::byte> stored(static_cast<std::size_t>(elems) * static_cast<std::size_t>(type_.bytes));
  take(stored.data(), stored.size(), fmt::format("rows {} to {}", next_, next_ + count - 1));
  h5::convert_numbers(type_, stored.data(), elems, dst, to);
  next_ += count;
}

void NpyArray::expect_end() {
  char byte = 0;
  if (stream_ ? stream_->read_some(&byte, 1) > 0 : taken_ < content_.size())
    fail(fmt::format("has more bytes than its header tells, {}", text()));
}

}  // namespace echelon::inline data
