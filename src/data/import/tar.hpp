// SPDX-License-Identifier: Apache-2.0
// Tar archives, plain or gzip (recognised by content): ustar, GNU long names, pax headers. Returns their members in
// order, without unpacking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/import/byte_stream.hpp"

namespace echelon::inline data {

struct TarMember {
  std::string name;
  bool is_file = true;      // false: a link, a folder or a device
  std::int64_t header = 0;  // byte offset of its header in the archive (inflated)
  std::int64_t offset = 0;  // byte offset of its content
  std::int64_t bytes = 0;
};

// Errors are DataErrors with archive, member and byte.
class TarReader {
 public:
  explicit TarReader(const std::string& path);

  // Returns the next member; false at the end of the file, which must follow the blocks of zeros that end an archive.
  // Members after these blocks, from concatenated archives, follow as with GNU tar's --ignore-zeros. A truncated member
  // of a gzipped archive is detected by the call after it.
  bool next(TarMember& member);
  // Whether the archive holds the whole content of the last member. For gzip this is known only after the next call of
  // next(), which may have failed for another reason.
  bool last_is_whole() const { return whole_; }
  // Returns the content of the member that next() returned last.
  std::string content(const TarMember& member);

 private:
  [[noreturn]] void fail(std::int64_t at, const std::string& what) const;
  bool read_block(std::int64_t at, char* block);
  bool read_header(std::int64_t& at, char* block);
  void require_whole(const TarMember& member, std::int64_t end) const;
  void pass_over(const TarMember& member);
  void read_pax(std::string_view text, std::int64_t at);

  ByteStream stream_;
  std::int64_t file_bytes_;  // size of the archive as stored
  TarMember last_;           // its header and content precede the next header
  bool whole_ = true;
  std::string long_name_;  // for the next member; "" if it has none
  std::int64_t long_size_ = -1;
};

}  // namespace echelon::inline data
