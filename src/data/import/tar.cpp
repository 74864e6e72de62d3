// SPDX-License-Identifier: Apache-2.0
// https://www.gnu.org/software/tar/manual/html_node/Standard.html; pax: POSIX.1-2001, "pax Interchange Format".
#include "data/import/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kMostHeader = 1 << 20;  // limit for a long name or a pax header
constexpr unsigned kReadTogether = 1 << 14;    // small, because most of a plain archive is skipped

// Returns a text field of a header.
std::string_view text_at(const char* block, std::size_t at, std::size_t bytes) {
  const std::string_view field(block + at, bytes);
  return field.substr(0, field.find('\0'));
}

// Parses octal digits between blanks, or a big-endian number after a byte 0x80 (GNU); -1 if it is neither.
std::int64_t number_at(const char* block, std::size_t at, std::size_t bytes) {
  std::int64_t value = 0;
  if (static_cast<unsigned char>(block[at]) == 0x80) {
    for (std::size_t i = at + 1; i < at + bytes; ++i) {
      if (value >> 54 != 0) return -1;
      value = value << 8 | static_cast<unsigned char>(block[i]);
    }
    return value;
  }
  std::string_view text = text_at(block, at, bytes);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find(' '));
  if (text.empty()) return 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

// Compares the sum of all bytes, with the checksum field as blanks; some writers add signed bytes.
bool checksum_fits(const char* block) {
  constexpr std::size_t kAt = 148, kBytes = 8;
  std::int64_t of_unsigned = 0, of_signed = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const char c = i >= kAt && i < kAt + kBytes ? ' ' : block[i];
    of_unsigned += static_cast<unsigned char>(c);
    of_signed += static_cast<signed char>(c);
  }
  const std::int64_t stored = number_at(block, kAt, kBytes);
  return stored == of_unsigned || stored == of_signed;
}

std::string name_of(const char* block) {
  const std::string name(text_at(block, 0, 100));
  const std::string_view prefix = text_at(block, 345, 155);
  const bool posix = std::memcmp(block + 257, "ustar\0", 6) == 0;  // GNU's own headers have times there
  return posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

// Returns the offset after the last block of its content.
std::int64_t end_of(const TarMember& member) { return member.offset + (member.bytes + kBlock - 1) / kBlock * kBlock; }

}  // namespace

TarReader::TarReader(const std::string& path) : stream_(path, kReadTogether) {
  std::error_code error;
  file_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", path, error.message()));
}

void TarReader::fail(std::int64_t at, const std::string& what) const {
  throw DataError(fmt::format("{}: byte {}: {}", stream_.path(), at, what));
}

// Reads the header at byte `at`, where the stream must be; returns false at the end of the file.
bool TarReader::read_block(std::int64_t at, char* block) {
  const std::size_t got = stream_.read_some(block, kBlock);
  if (got > 0 && got < kBlock)
    fail(at, fmt::format("the archive ends in a header, after {} of {} bytes: it is truncated", got, kBlock));
  return got > 0;
}

// Reads the header at byte `at`, or the first one after the zeros there, and updates `at`; false if only zeros follow.
bool TarReader::read_header(std::int64_t& at, char* block) {
  const auto is_zero = [](char c) { return c == '\0'; };
  if (!read_block(at, block))
    fail(at, at == 0 ? "is empty, not a tar archive"
                     : "the archive ends without the blocks of zeros that end a tar archive: it is truncated");
  const bool behind_end = std::all_of(block, block + kBlock, is_zero);
  while (std::all_of(block, block + kBlock, is_zero)) {
    at += kBlock;
    const std::size_t got = stream_.read_some(block, kBlock);
    std::fill(block + got, block + kBlock, '\0');
    if (got == 0) return false;
  }
  if (checksum_fits(block)) return true;
  fail(at, at == 0      ? "is not a tar archive: the checksum of the first header is wrong"
           : behind_end ? "the data after the end of the archive are not the header of a member"
                        : "not the header of a member, because its checksum is wrong; the archive is damaged");
}

// `end`: size of the archive.
void TarReader::require_whole(const TarMember& member, std::int64_t end) const {
  if (end_of(member) > end)
    fail(member.header, fmt::format("'{}' reaches from byte {} to {}, but the archive ends at {}: it is truncated",
                                    member.name, member.offset, end_of(member), end));
}

void TarReader::pass_over(const TarMember& member) {
  try {
    stream_.seek(end_of(member));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}, in '{}', which begins at byte {}", error.what(), member.name, member.header));
  }
  require_whole(member, stream_.offset());
}

// Parses lines "<bytes of the line> <key>=<value>\n".
void TarReader::read_pax(std::string_view text, std::int64_t at) {
  while (!text.empty()) {
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || bytes <= digits + 1 || bytes > text.size() || text[digits] != ' ')
      fail(at, "a pax header that is damaged");
    const std::string_view entry = text.substr(digits + 1, bytes - digits - 2);  // without the end of the line
    text.remove_prefix(bytes);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) fail(at, "a pax header that is damaged");
    const std::string_view key = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (key == "path") long_name_ = value;
    if (key != "size") continue;
    const auto [past, wrong] = std::from_chars(value.data(), value.data() + value.size(), long_size_);
    if (wrong != std::errc() || past != value.data() + value.size() || long_size_ < 0 || long_size_ >> 60 != 0)
      fail(at, fmt::format("a pax header with size '{}'", value.substr(0, 40)));
  }
}

bool TarReader::next(TarMember& member) {
  for (std::array<char, kBlock> block;;) {
    pass_over(last_);
    whole_ = true;
    std::int64_t at = end_of(last_);
    if (!read_header(at, block.data())) return false;
    member = {.name = name_of(block.data()), .header = at, .offset = at + kBlock};
    member.bytes = number_at(block.data(), 124, 12);
    if (member.bytes < 0) fail(at, fmt::format("the size of '{}' cannot be read", member.name));
    const char type = block[156];
    if (type == 'L' || type == 'x' || type == 'K' || type == 'g') {
      if (member.bytes > kMostHeader) fail(at, fmt::format("a header of {} bytes", member.bytes));
      const std::string text = type == 'L' || type == 'x' ? content(member) : "";
      if (type == 'L') long_name_ = text.c_str();  // up to the zero byte
      if (type == 'x') read_pax(text, at);
      last_ = member;
      continue;
    }
    if (!long_name_.empty()) member.name = std::exchange(long_name_, {});
    if (long_size_ >= 0) member.bytes = std::exchange(long_size_, -1);
    member.is_file = (type == '0' || type == '\0' || type == '7') && !member.name.ends_with('/');
    if (type >= '1' && type <= '6') member.bytes = 0;  // these types have no content, whatever their size field says
    if (stream_.plain()) require_whole(member, file_bytes_);
    last_ = member;
    whole_ = stream_.plain();
    return true;
  }
}

std::string TarReader::content(const TarMember& member) {
  std::string text(static_cast<std::size_t>(member.bytes), '\0');
  stream_.seek(member.offset);
  stream_.read(text.data(), text.size(), fmt::format("'{}'", member.name));
  return text;
}

}  // namespace echelon::inline data
