// SPDX-License-Identifier: Apache-2.0
#include "h5/heap_texts.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "h5/heap_file.hpp"

namespace echelon::h5 {
namespace {

constexpr int kMostBlocks = 4096;                            // limit for a header
constexpr unsigned kAttribute = 0x0c, kContinuation = 0x10;  // types of header messages

std::size_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Returns the value of an attribute message if it has this name.
std::optional<std::string> value_of(const FileBytes& block, std::size_t at, std::size_t size, std::string_view name) {
  const std::uint64_t version = block.number(at, 1);
  if (version < 1 || version > 3) block.damaged("is damaged: an attribute has an unknown version");
  const std::uint64_t name_bytes = block.number(at + 2, 2);
  std::uint64_t before = name_bytes + block.number(at + 4, 2) + block.number(at + 6, 2);  // name, type, space
  const std::size_t names_at = at + (version == 3 ? 9 : 8);
  if (version == 1) before = padded(name_bytes) + padded(block.number(at + 4, 2)) + padded(block.number(at + 6, 2));
  const std::string_view found = block.part(names_at, name_bytes);
  if (found.substr(0, found.find('\0')) != name) return std::nullopt;
  const std::size_t begin = names_at + before;
  if (begin > at + size) block.damaged("is damaged: its parts do not fit into their message");
  return std::string(block.part(begin, at + size - begin));
}

// Walks the blocks of an object header.
class HeaderWalk {
 public:
  HeaderWalk(const ByteFile& file, std::string_view name) : file_(file), name_(name) {}

  std::optional<std::string> find(std::uint64_t header) {
    const FileBytes start = file_.read(header, std::min<std::uint64_t>(file_.left(header), 64));
    if (start.begins("OHDR")) {
      const std::uint64_t flags = start.number(5, 1);
      ordered_ = (flags & 4U) != 0;
      const std::size_t skip = 6 + ((flags & 0x20U) != 0 ? 16 : 0) + ((flags & 0x10U) != 0 ? 4 : 0);
      const std::size_t width = std::size_t{1} << (flags & 3U);
      second_ = true;
      walk(file_.read(header + skip + width, start.number(skip, width)), 0);
    } else {
      if (start.number(0, 1) != 1) start.damaged("is damaged: its object header has an unknown version");
      walk(file_.read(header + 16, start.number(8, 4)), 0);
    }
    for (int blocks = 0; !value_ && !next_.empty(); ++blocks) {
      const auto [at, size] = next_.back();
      next_.pop_back();
      const FileBytes block = file_.read(at, size);
      if (blocks > kMostBlocks || (second_ && (size < 8 || !block.begins("OCHK"))))
        block.damaged("is damaged: its object header is inconsistent");
      walk(second_ ? file_.read(at + 4, size - 8) : block, 0);
    }
    return value_;
  }

 private:
  void walk(const FileBytes& block, std::size_t at) {
    const std::size_t head = !second_ ? 8 : ordered_ ? 6 : 4;
    while (!value_ && at + head <= block.size()) {
      const std::uint64_t kind = block.number(at, second_ ? 1 : 2), size = block.number(at + (second_ ? 1 : 2), 2);
      const std::uint64_t flags = block.number(at + (second_ ? 3 : 4), 1);
      at += head;
      block.part(at, size);
      if (kind == kContinuation) next_.emplace_back(block.number(at, 8), block.number(at + 8, 8));
      if (kind == kAttribute && (flags & 2U) == 0) value_ = value_of(block, at, size, name_);
      at += size;
    }
  }

  const ByteFile& file_;
  std::string_view name_;
  bool second_ = false, ordered_ = false;  // header of version 2; with creation order
  std::vector<std::pair<std::uint64_t, std::uint64_t>> next_;
  std::optional<std::string> value_;
};

}  // namespace

std::vector<std::string> read_heap_texts(const std::string& path, std::uint64_t header, std::string_view name,
                                         std::size_t count, const std::string& where) {
  const ByteFile file(path, where);
  const std::optional<std::string> value = HeaderWalk(file, name).find(header);
  if (!value)
    throw DataError(
        fmt::format("{} is text of variable length in a storage that cannot be checked; write it with a "
                    "fixed length",
                    where));
  const FileBytes elements(*value, where);
  Heaps heaps(file);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t length = elements.number(16 * i, 4), address = elements.number(16 * i + 4, 8);
    if (length == 0) {
      texts.emplace_back();
      continue;
    }
    const std::string_view text = heaps.object(address, elements.number(16 * i + 12, 4));
    if (text.size() < length) elements.damaged("is damaged: a text is missing from its heap");
    texts.emplace_back(text.substr(0, std::min<std::size_t>(length, text.find('\0'))));
  }
  return texts;
}

}  // namespace echelon::h5
