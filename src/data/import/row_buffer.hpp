// SPDX-License-Identifier: Apache-2.0
// A buffer in front of an HDF5 dataset that is being written: collects rows and writes them in blocks of about
// kBlockElems elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "data/import/shard_writer.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {

template <class T>
class RowBuffer {
 public:
  // Creates the dataset. `shape`: shape of the whole dataset; `stored`: its type in the file; `options`: compression
  // and checksums.
  RowBuffer(h5::Writer& writer, std::string name, DType stored, const Shape& shape, const ShardOptions& options)
      : writer_(writer), name_(std::move(name)), row_elems_(shape.row_elems()) {
    const std::int64_t rows = std::max<std::int64_t>(1, kBlockElems / row_elems_);
    writer_.create(name_, stored, shape,
                   {.chunk_rows = rows, .deflate = options.compress, .checksum = options.checksums});
  }

  // Appends whole rows; call flush() after the last ones.
  void append(const std::vector<T>& rows) {
    held_.insert(held_.end(), rows.begin(), rows.end());
    if (held_.size() >= kBlockElems) flush();
  }
  void append(T value) {
    held_.push_back(value);
    if (held_.size() >= kBlockElems) flush();
  }
  void flush() {
    const auto rows = static_cast<std::int64_t>(held_.size()) / row_elems_;
    if (rows > 0) writer_.write_rows(name_, written_, rows, held_.data(), dtype_of<T>);
    written_ += rows;
    held_.clear();
  }

 private:
  static constexpr std::int64_t kBlockElems = 16384;

  h5::Writer& writer_;
  std::string name_;
  std::int64_t row_elems_;
  std::int64_t written_ = 0;
  std::vector<T> held_;
};

// Tokens are stored in the smallest type that their vocabulary allows.
inline DType token_type(std::int64_t vocabulary) { return vocabulary <= 256 ? DType::u8 : DType::i32; }

}  // namespace echelon::inline data
