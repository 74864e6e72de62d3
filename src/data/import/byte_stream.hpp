// SPDX-License-Identifier: Apache-2.0
// Reads a file sequentially, and inflates it if it is gzip (recognised by its content). Throws DataError with the path
// and the byte offset if the file ends early or is damaged, and with the path if it cannot be opened.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace echelon::inline data {

class ByteStream {
 public:
  // `buffer_bytes`: size of one read from the file.
  explicit ByteStream(const std::string& path, unsigned buffer_bytes = 1 << 18);

  const std::string& path() const { return path_; }
  std::int64_t offset() const { return offset_; }  // position of the next byte, inflated
  void rewind();                                   // to the beginning
  // Moves to byte `offset` (inflated); not allowed between calls of line(). In gzip, all bytes in between are inflated
  // (from the beginning when moving backwards), and offset() is smaller than requested if the stream ends earlier.
  // Beyond the end of a plain file the next read finds nothing.
  void seek(std::int64_t offset);
  bool plain() const { return gzdirect(file_.get()) != 0; }  // not gzip
  // Reads up to `bytes` and returns the number of bytes read; fewer only at the end of the file.
  std::size_t read_some(void* dst, std::size_t bytes);
  // Reads exactly `bytes`. If the file ends earlier, the error names `what` ("label 17").
  void read(void* dst, std::size_t bytes, const std::string& what);
  std::uint32_t read_be32(const std::string& what);  // a big-endian number
  // Reads the next line without its end ("\n" or "\r\n"); the first line also without a byte-order mark (UTF-8).
  // Returns false at the end of the file. `ended`: receives whether the line had an end. `most`: a longer line is cut
  // after this many bytes, or up to a block more.
  bool line(std::string& text, bool* ended = nullptr, std::size_t most = SIZE_MAX);

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::size_t fill(void* dst, std::size_t bytes);

  std::string path_;
  unsigned buffer_bytes_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::int64_t offset_ = 0;
  std::vector<char> ahead_;  // read for line() but not yet returned
  std::size_t taken_ = 0;
};

}  // namespace echelon::inline data
