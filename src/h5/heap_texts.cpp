// SPDX-License-Identifier: Apache-2.0
#include "h5/heap_texts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace echelon::h5 {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // limit of a header block or a heap
constexpr int kMostBlocks = 4096;                              // limit for a header
constexpr unsigned kAttribute = 0x0c, kContinuation = 0x10;    // types of header messages

// Bytes of the file; reading past their end counts as damage.
class Bytes {
 public:
  Bytes(std::string bytes, const std::string& where) : bytes_(std::move(bytes)), where_(where) {}
  [[noreturn]] void damaged(const char* what) const { throw DataError(fmt::format("{} {}", where_, what)); }

  std::uint64_t number(std::size_t at, std::size_t size) const {
    const std::string_view from = part(at, size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    return value;
  }
  std::string_view part(std::size_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged("is damaged: its parts do not fit into their block");
    return std::string_view(bytes_).substr(at, size);
  }
  std::size_t size() const { return bytes_.size(); }
  bool begins(std::string_view signature) const { return bytes_.starts_with(signature); }

 private:
  std::string bytes_;
  const std::string& where_;
};

class File {
 public:
  File(const std::string& path, const std::string& where)
      : where_(where), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0) throw DataError(fmt::format("{} cannot be read", where));
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;

  Bytes read(std::uint64_t at, std::uint64_t size) const {
    if (at > size_ || size > size_ - at || size > kMostBytes)
      throw DataError(fmt::format("{} is damaged: it points outside the file", where_));
    std::string bytes(size, '\0');
    for (std::uint64_t have = 0; have < size;) {
      const ssize_t got = ::pread(fd_, bytes.data() + have, size - have, static_cast<off_t>(at + have));
      if (got <= 0) throw DataError(fmt::format("{} cannot be read", where_));
      have += static_cast<std::uint64_t>(got);
    }
    return {std::move(bytes), where_};
  }
  std::uint64_t left(std::uint64_t at) const { return at < size_ ? size_ - at : 0; }

 private:
  const std::string& where_;
  int fd_;
  std::uint64_t size_ = 0;
};

std::size_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Returns the value of an attribute message if it has this name.
std::optional<std::string> value_of(const Bytes& block, std::size_t at, std::size_t size, std::string_view name) {
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
  HeaderWalk(const File& file, std::string_view name) : file_(file), name_(name) {}

  std::optional<std::string> find(std::uint64_t header) {
    const Bytes start = file_.read(header, std::min<std::uint64_t>(file_.left(header), 64));
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
      const Bytes block = file_.read(at, size);
      if (blocks > kMostBlocks || (second_ && (size < 8 || !block.begins("OCHK"))))
        block.damaged("is damaged: its object header is inconsistent");
      walk(second_ ? file_.read(at + 4, size - 8) : block, 0);
    }
    return value_;
  }

 private:
  void walk(const Bytes& block, std::size_t at) {
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

  const File& file_;
  std::string_view name_;
  bool second_ = false, ordered_ = false;  // header of version 2; with creation order
  std::vector<std::pair<std::uint64_t, std::uint64_t>> next_;
  std::optional<std::string> value_;
};

// Returns the objects of a heap by their numbers.
std::map<std::uint64_t, std::string> read_heap(const File& file, std::uint64_t address) {
  const Bytes head = file.read(address, 16);
  if (!head.begins("GCOL")) head.damaged("is damaged: its heap has no signature");
  const Bytes heap = file.read(address, head.number(8, 8));
  std::map<std::uint64_t, std::string> objects;
  for (std::size_t at = 16; at + 16 <= heap.size();) {
    const std::uint64_t number = heap.number(at, 2), size = heap.number(at + 8, 8);
    if (number == 0) break;  // the rest is free space
    const bool fresh = objects.emplace(number, heap.part(at + 16, size)).second;
    if (!fresh) heap.damaged("is damaged: its heap holds an object twice");
    at += 16 + padded(size);
  }
  return objects;
}

}  // namespace

std::vector<std::string> read_heap_texts(const std::string& path, std::uint64_t header, std::string_view name,
                                         std::size_t count, const std::string& where) {
  const File file(path, where);
  const std::optional<std::string> value = HeaderWalk(file, name).find(header);
  if (!value)
    throw DataError(
        fmt::format("{} is text of variable length in a storage that cannot be checked; write it with a "
                    "fixed length",
                    where));
  const Bytes elements(*value, where);
  std::map<std::uint64_t, std::map<std::uint64_t, std::string>> heaps;  // by heap address
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t length = elements.number(16 * i, 4), address = elements.number(16 * i + 4, 8);
    if (length == 0) {
      texts.emplace_back();
      continue;
    }
    if (!heaps.contains(address)) heaps.emplace(address, read_heap(file, address));
    const auto found = heaps[address].find(elements.number(16 * i + 12, 4));
    if (found == heaps[address].end() || found->second.size() < length)
      elements.damaged("is damaged: a text is missing from its heap");
    texts.push_back(found->second.substr(0, std::min<std::size_t>(length, found->second.find('\0'))));
  }
  return texts;
}

}  // namespace echelon::h5
