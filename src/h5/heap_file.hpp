// SPDX-License-Identifier: Apache-2.0
// Parts of an HDF5 file that are read without the library: blocks of bytes, and global heaps, which hold values of
// variable length (HDF5 File Format Specification 3.0, III.E). Heaps have no checksums, and a flipped bit in one
// crashes the library (1.10). Addresses and lengths must have 8 bytes, and the file no user block.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace echelon::h5 {

// Bytes of a file; reading past their end counts as damage. Errors are DataErrors that begin with `where`, which must
// outlive the object.
class FileBytes {
 public:
  FileBytes(std::string bytes, const std::string& where) : bytes_(std::move(bytes)), where_(where) {}
  [[noreturn]] void damaged(const char* what) const;

  std::uint64_t number(std::size_t at, std::size_t size) const;  // little endian
  std::string_view part(std::size_t at, std::uint64_t size) const;
  std::size_t size() const { return bytes_.size(); }
  bool begins(std::string_view signature) const { return bytes_.starts_with(signature); }

 private:
  std::string bytes_;
  const std::string& where_;
};

class ByteFile {
 public:
  ByteFile(const std::string& path, const std::string& where);
  ~ByteFile();
  ByteFile(const ByteFile&) = delete;

  FileBytes read(std::uint64_t at, std::uint64_t size) const;
  std::uint64_t left(std::uint64_t at) const { return at < size_ ? size_ - at : 0; }

 private:
  const std::string& where_;
  int fd_;
  std::uint64_t size_ = 0;
};

// The objects of global heaps by the address of their heap and their number. Holds the heaps that were read, up to a
// limit.
class Heaps {
 public:
  explicit Heaps(const ByteFile& file) : file_(file) {}
  // Valid until the next call. DataError if there is no such object.
  std::string_view object(std::uint64_t address, std::uint64_t number);
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct Heap {
    FileBytes bytes;
    std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> objects;  // place and size by number
  };
  Heap read(std::uint64_t address);

  const ByteFile& file_;
  std::map<std::uint64_t, Heap> heaps_;
  std::uint64_t bytes_held_ = 0, bytes_read_ = 0;
};

}  // namespace echelon::h5
