// SPDX-License-Identifier: Apache-2.0
#include "data/import/byte_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"

namespace echelon::inline data {

ByteStream::ByteStream(const std::string& path, unsigned buffer_bytes) : path_(path), buffer_bytes_(buffer_bytes) {
  std::error_code unreadable;  // gzopen reports the reason
  if (std::filesystem::is_directory(path, unreadable))
    throw DataError(fmt::format("{}: is a folder, expected a file", path));
  errno = 0;
  file_.reset(gzopen(path.c_str(), "rb"));
  if (!file_) throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno != 0 ? errno : ENOMEM)));
  gzbuffer(file_.get(), buffer_bytes_);
}

void ByteStream::rewind() {
  gzclearerr(file_.get());
  if (gzrewind(file_.get()) != 0) throw DataError(fmt::format("{}: cannot be read from its start again", path_));
  offset_ = 0;
  ahead_.clear();
  taken_ = 0;
}

void ByteStream::seek(std::int64_t offset) {
  const std::int64_t distance = offset - offset_;
  if (plain() && (distance < 0 || distance > buffer_bytes_)) {
    gzclearerr(file_.get());
    if (gzseek(file_.get(), offset, SEEK_SET) < 0)
      throw DataError(fmt::format("{}: cannot be read beyond byte {}", path_, offset));
    offset_ = offset;
    return;
  }
  if (distance < 0) rewind();
  std::vector<char> passed(std::min<std::size_t>(buffer_bytes_, static_cast<std::size_t>(offset - offset_)));
  while (offset_ < offset) {
    const auto next = std::min<std::size_t>(passed.size(), static_cast<std::size_t>(offset - offset_));
    if (read_some(passed.data(), next) < next) return;
  }
}

std::size_t ByteStream::fill(void* dst, std::size_t bytes) {
  std::size_t got = 0;
  while (got < bytes) {
    const auto want = static_cast<unsigned>(std::min<std::size_t>(bytes - got, 1U << 30));
    const int count = gzread(file_.get(), static_cast<char*>(dst) + got, want);
    int status = Z_OK;
    const char* text = gzerror(file_.get(), &status);
    if (count < 0 || (count == 0 && status != Z_OK && status != Z_STREAM_END))
      throw DataError(fmt::format("{}: cannot be inflated beyond byte {}: {}", path_,
                                  offset_ + static_cast<std::int64_t>(got),
                                  status == Z_BUF_ERROR ? "the gzip file is truncated"
                                  : status == Z_ERRNO   ? std::strerror(errno)
                                                        : text));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

std::size_t ByteStream::read_some(void* dst, std::size_t bytes) {
  const std::size_t got = fill(dst, bytes);
  offset_ += static_cast<std::int64_t>(got);
  return got;
}

void ByteStream::read(void* dst, std::size_t bytes, const std::string& what) {
  const std::size_t got = read_some(dst, bytes);
  if (got < bytes)
    throw DataError(fmt::format("{}: ends at byte {}, in {} ({} of {} bytes)", path_, offset_, what, got, bytes));
}

std::uint32_t ByteStream::read_be32(const std::string& what) {
  std::array<std::uint8_t, 4> bytes{};
  read(bytes.data(), bytes.size(), what);
  std::uint32_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

bool ByteStream::line(std::string& text, bool* ended, std::size_t most) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  const bool first = offset_ == 0;
  text.clear();
  bool any = false, closed = false;
  for (;;) {
    if (taken_ == ahead_.size()) {
      ahead_.resize(1 << 16);
      ahead_.resize(fill(ahead_.data(), ahead_.size()));
      taken_ = 0;
      if (ahead_.empty()) break;
    }
    any = true;
    const char* begin = ahead_.data() + taken_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', ahead_.size() - taken_));
    const std::size_t length = end != nullptr ? static_cast<std::size_t>(end - begin) : ahead_.size() - taken_;
    text.append(begin, length);
    taken_ += length + (end != nullptr ? 1 : 0);
    offset_ += static_cast<std::int64_t>(length + (end != nullptr ? 1 : 0));
    closed = end != nullptr;
    if (closed || text.size() >= most) break;
  }
  if (first && text.starts_with(kMark)) text.erase(0, kMark.size());
  if (ended != nullptr) *ended = closed;
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return any;
}

}  // namespace echelon::inline data
