// SPDX-License-Identifier: Apache-2.0
#include "h5/heap_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace echelon::h5 {
namespace {

constexpr std::uint64_t kMostBlockBytes = std::uint64_t{64} << 20;  // limit of a header block, a heap, and heaps held

}  // namespace

void FileBytes::damaged(const char* what) const { throw DataError(fmt::format("{} {}", where_, what)); }

std::uint64_t FileBytes::number(std::size_t at, std::size_t size) const {
  const std::string_view from = part(at, size);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
  return value;
}

std::string_view FileBytes::part(std::size_t at, std::uint64_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at) damaged("is damaged: its parts do not fit into their block");
  return std::string_view(bytes_).substr(at, size);
}

ByteFile::ByteFile(const std::string& path, const std::string& where)
    : where_(where), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) throw DataError(fmt::format("{} cannot be read", where));
  size_ = static_cast<std::uint64_t>(status.st_size);
}

ByteFile::~ByteFile() {
  if (fd_ >= 0) ::close(fd_);
}

FileBytes ByteFile::read(std::uint64_t at, std::uint64_t size) const {
  if (at > size_ || size > size_ - at || size > kMostBlockBytes)
    throw DataError(fmt::format("{} is damaged: it points outside the file", where_));
  std::string bytes(size, '\0');
  for (std::uint64_t have = 0; have < size;) {
    const ssize_t got = ::pread(fd_, bytes.data() + have, size - have, static_cast<off_t>(at + have));
    if (got <= 0) throw DataError(fmt::format("{} cannot be read", where_));
    have += static_cast<std::uint64_t>(got);
  }
  return {std::move(bytes), where_};
}

Heaps::Heap Heaps::read(std::uint64_t address) {
  const FileBytes head = file_.read(address, 16);
  if (!head.begins("GCOL")) head.damaged("is damaged: its heap has no signature");
  Heap heap{.bytes = file_.read(address, head.number(8, 8)), .objects = {}};
  bytes_read_ += heap.bytes.size();
  for (std::size_t at = 16; at + 16 <= heap.bytes.size();) {
    const std::uint64_t number = heap.bytes.number(at, 2), size = heap.bytes.number(at + 8, 8);
    if (number == 0) break;  // the rest is free space
    heap.bytes.part(at + 16, size);
    if (!heap.objects.emplace(number, std::pair(at + 16, size)).second)
      heap.bytes.damaged("is damaged: its heap holds an object twice");
    at += 16 + (size + 7) / 8 * 8;
  }
  return heap;
}

std::string_view Heaps::object(std::uint64_t address, std::uint64_t number) {
  auto found = heaps_.find(address);
  if (found == heaps_.end()) {
    if (bytes_held_ > kMostBlockBytes) heaps_.clear(), bytes_held_ = 0;
    found = heaps_.emplace(address, read(address)).first;
    bytes_held_ += found->second.bytes.size();
  }
  const Heap& heap = found->second;
  const auto object = heap.objects.find(number);
  if (object == heap.objects.end()) heap.bytes.damaged("is damaged: a value is missing from its heap");
  return heap.bytes.part(object->second.first, object->second.second);
}

}  // namespace echelon::h5
