// Tar archives, plain or gzip (seen by content): ustar, long names of GNU, headers of pax. Their members in order,
// without unpacking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/import/byte_stream.hpp"

namespace echelon::inline data {

struct TarMember {
  std::string name;
  bool is_file = true;      // false: a link, a folder, a device
  std::int64_t header = 0;  // where it begins in the archive (inflated)
  std::int64_t offset = 0;  // of its content
  std::int64_t bytes = 0;
};

// Errors are DataErrors with archive, member and byte.
class TarReader {
 public:
  explicit TarReader(const std::string& path);

  // The next member; false at the end of the file, before which the blocks of zeros that end an archive must be.
  // Members behind them, of archives that were concatenated, follow, as GNU tar's --ignore-zeros has it. That a member
  // of a gzipped archive is truncated is found by the call after it.
  bool next(TarMember& member);
  // Whether the archive holds the whole content of the last member; of gzip not known before the call of next() after
  // it, which may have failed for another reason.
  bool last_is_whole() const { return whole_; }
  // Of the member that next() gave last.
  std::string content(const TarMember& member);

 private:
  [[noreturn]] void fail(std::int64_t at, const std::string& what) const;
  bool read_block(std::int64_t at, char* block);
  bool read_header(std::int64_t& at, char* block);
  void require_whole(const TarMember& member, std::int64_t end) const;
  void pass_over(const TarMember& member);
  void read_pax(std::string_view text, std::int64_t at);

  ByteStream stream_;
  std::int64_t file_bytes_;  // of the archive as it is stored
  TarMember last_;           // its header and content lie before the next header
  bool whole_ = true;
  std::string long_name_;  // of the next member; "" where it has none
  std::int64_t long_size_ = -1;
};

}  // namespace echelon::inline data
