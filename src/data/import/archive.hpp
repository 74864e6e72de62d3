// SPDX-License-Identifier: Apache-2.0
// Archives, read by libarchive: tar (ustar, GNU, pax; plain or compressed by gzip, bzip2, xz or zstd) and zip, told
// apart by content. Returns their members in order, without unpacking. ByteStream inflates gzip, because libarchive
// ignores the checksums of gzip.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "data/import/byte_stream.hpp"

struct archive;

namespace echelon::inline data {

struct ArchiveMember {
  std::string name;
  bool is_file = true;      // false: a link, a folder, a device or a file with holes
  std::int64_t header = 0;  // byte offset of its header in the archive (decompressed); in a zip as `offset`
  std::int64_t offset = 0;  // byte offset of its content
  std::int64_t bytes = 0;
};

// Errors are DataErrors with archive, member and byte.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::string& path);
  ArchiveReader(const ArchiveReader&) = delete;

  const std::string& path() const { return stream_.path(); }
  // Returns the next member; false at the end of the file, which must follow the blocks of zeros that end a tar.
  // Members after these blocks, from concatenated archives, follow as with GNU tar's --ignore-zeros. A truncated member
  // is detected by the call after it.
  bool next(ArchiveMember& member);
  // Whether the archive holds the whole content of the last member. This is known only after the next call of next(),
  // which may have failed for another reason.
  bool last_is_whole() const { return whole_; }
  // Returns the content of the member that next() returned last; only once.
  std::string content();
  // Whether the file itself holds the content of members, at their offsets.
  bool is_plain_tar() const { return stream_.plain() && is_tar_of_stream(); }

 private:
  bool is_tar_of_stream() const;  // libarchive decompresses nothing
  std::int64_t at() const;        // byte offset of what is read next
  std::string reason() const;
  [[noreturn]] void fail(std::int64_t at, const std::string& what) const;
  [[noreturn]] void fail_in_last() const;
  struct Callbacks;  // of libarchive

  ByteStream stream_;
  std::int64_t file_bytes_;  // size of the archive as stored
  bool zip_ = false;
  std::array<char, 512> block_;  // the stream is read in blocks of a tar, so that all before a damage is found
  std::string trouble_;          // error of the stream inside a call of libarchive
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  int opened_;
  ArchiveMember last_;
  bool whole_ = true;
};

}  // namespace echelon::inline data
