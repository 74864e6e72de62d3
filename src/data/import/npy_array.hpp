// SPDX-License-Identifier: Apache-2.0
// An array of NumPy (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3): a .npy
// file, also gzipped, or an array of an .npz, named "FILE.npz:NAME", which is held in memory. Read row by row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "data/import/byte_stream.hpp"
#include "h5/numbers.hpp"

namespace echelon::inline data {

class NpyArray {
 public:
  // Throws DataError with file and byte for damage; for arrays of text or records, in Fortran order or of no axis; and
  // for a name that an .npz does not hold, with those that it holds.
  explicit NpyArray(const std::string& input);

  const std::string& input() const { return input_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  std::int64_t rows() const { return extents_.front(); }
  std::int64_t row_elems() const;
  const h5::NumberType& type() const { return type_; }
  std::string text() const;  // "<f4 (60000, 28, 28)"

  void rewind();
  // Reads the next `count` rows and converts them (h5/numbers.hpp). A float does not become an integer.
  void read(std::int64_t count, void* dst, DType to);
  void expect_end();  // DataError if bytes follow the last row

 private:
  void open_member(const std::string& archive, const std::string& name);
  void read_header();
  std::string value_of(const std::string& header, const std::string& key) const;
  void take(void* dst, std::size_t bytes, const std::string& what);
  [[noreturn]] void fail(const std::string& what) const;

  std::string input_;
  std::optional<ByteStream> stream_;  // none for an array of an .npz
  std::string content_;               // of that
  std::size_t taken_ = 0;             // bytes of content_
  std::string descr_;
  h5::NumberType type_;
  std::vector<std::int64_t> extents_;
  std::int64_t next_ = 0;  // row
};

}  // namespace echelon::inline data
