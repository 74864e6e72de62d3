// SPDX-License-Identifier: Apache-2.0
// The inside of a Reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/crash_note.hpp"
#include "h5/chunks.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"
#include "h5/numbers.hpp"
#include "h5/placed.hpp"

namespace echelon::h5 {

struct OpenDataset {
  Handle handle;
  Handle type;  // the type in the file
  std::optional<NumberType> number;
  DatasetInfo info;
  RowChunks chunks;
  bool is_virtual = false;
  std::string linked_file;       // the file that holds the dataset, behind an external link; "": the opened one
  std::uint64_t file_bytes = 0;  // size of the file that holds the dataset; behind an external link it is another file
  PlacedValues placed;           // of contiguous values

  // The file that holds it, of a reader of `path`.
  const std::string& home(const std::string& path) const { return linked_file.empty() ? path : linked_file; }
  // Whether the values need no conversion.
  bool is_stored_as(DType dtype) const { return info.stored_as.empty() && info.dtype == dtype; }
};

// Wraps every library call that reads a file.
class Reading {
 public:
  explicit Reading(const std::string& path) : note_("the HDF5 library read", path.c_str()) { quiet_thread(); }

 private:
  CrashNote note_;
};

struct Reader::Body {
  std::string path;
  std::uint64_t file_bytes = 0;
  Handle file;
  std::mutex mutex;  // guards `open`
  std::map<std::string, std::unique_ptr<OpenDataset>, std::less<>> open;
  std::atomic<std::uint64_t> bytes_read = 0, library_reads = 0;

  [[noreturn]] void fail(std::string_view dataset, const std::string& what) const {
    throw DataError(fmt::format("{}: dataset '{}' {}", path, dataset, what));
  }
  bool has(std::string_view name) const {
    const std::optional<bool> found = path_exists(file.id(), name);
    if (!found) fail(name, "cannot be looked up: " + reason());
    return *found;
  }
  const OpenDataset& dataset(std::string_view name);
  std::unique_ptr<OpenDataset> open_dataset(const std::string& name);
  void require_chunk(const OpenDataset& dataset, hid_t space) const;
  void require_place(const OpenDataset& dataset, H5D_layout_t layout) const;
  // The references of rows [first, first + count) of variable length, as they are in the file.
  std::string references_of(const std::string& name, hid_t dataset, std::int64_t rows, std::int64_t first,
                            std::int64_t count);
  void read_slab(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst, hid_t as);
  void read_box(const OpenDataset& dataset, const Shape& offset, const Shape& shape, void* dst, hid_t as);
  void read_stored_box(const OpenDataset& dataset, const Shape& offset, const Shape& shape, void* dst);
  void require_read_sources(const OpenDataset& dataset) const;
  void read_whole_chunks(const OpenDataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* dst);
  void read_stored(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst);
  void read_converted(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype);
};

}  // namespace echelon::h5
