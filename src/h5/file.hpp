// HDF5, typed, checked and atomic. The only room that includes the library.
//
// Every call may come from any thread: Debian's HDF5 serialises them behind one lock. What goes wrong with a file that
// is being read is a DataError naming the file, the dataset and what was found instead; with one being written, an
// EnvironmentError with the system's reason (disk full), the temporary file removed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::h5 {

struct DatasetInfo {
  std::string name;  // "samples", "weights/conv1.weight"
  Shape shape;
  DType dtype = DType::f32;
  Shape chunk;           // rank 0: contiguous
  bool deflate = false;  // compressed (gzip, alone or behind byte shuffle)
  std::uint64_t stored_bytes = 0;
  // Chunks that the shape needs, and those that were ever written; contiguous datasets count as one chunk. What was
  // never written reads as the fill value. Datasets that lie in other files count as written.
  std::uint64_t chunks = 1, written_chunks = 1;
};

// Reading. Opened read-only; where the file system refuses locks the file is opened without, with one line in the log.
class Reader {
 public:
  explicit Reader(const std::string& path);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const std::string& path() const;
  bool has(std::string_view dataset) const;
  std::vector<DatasetInfo> datasets() const;  // all of them, by name, groups walked
  // Throws DataError where the dataset is missing or its type is none of DType's.
  DatasetInfo info(std::string_view dataset) const;

  // Rows [first, first + count) of the outermost axis into `dst`, converted to `dtype`. Bounded memory: one chunk at a
  // time at most. Compressed chunks that hold whole rows are inflated outside the library's lock.
  void read_rows(std::string_view dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype) const;
  void read_all(std::string_view dataset, void* dst, DType dtype) const;

  // Attributes of the file's root. A missing one: the fallback, or DataError for the plain forms.
  bool has_attribute(std::string_view name) const;
  std::int64_t attribute_int(std::string_view name) const;
  double attribute_double(std::string_view name) const;
  std::string attribute_text(std::string_view name) const;
  std::vector<double> attribute_doubles(std::string_view name) const;
  std::vector<std::string> attribute_texts(std::string_view name) const;

  // Bytes asked of the file by read_rows and read_all so far (stored bytes of compressed chunks).
  std::uint64_t bytes_read() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

struct DatasetOptions {
  std::int64_t chunk_rows = 0;  // rows of the outermost axis in a chunk; 0: contiguous
  int deflate = 0;              // 0 none, 1 (fast) to 9 (small); needs chunk_rows > 0
};

// Writing: into a temporary file beside `path`; `publish` makes it appear whole. Without it nothing remains.
class Writer {
 public:
  explicit Writer(const std::string& path);
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  // Creates a dataset (groups in the name are made) to be filled by rows, in any order.
  void create(std::string_view dataset, DType dtype, const Shape& shape, const DatasetOptions& options = {});
  void write_rows(std::string_view dataset, std::int64_t first, std::int64_t count, const void* src, DType dtype);
  // A region (hyperslab) of an existing dataset: `offset` and `shape`, one entry an axis.
  void write_region(std::string_view dataset, const Shape& offset, const Shape& shape, const void* src, DType dtype);
  void write_all(std::string_view dataset, DType dtype, const Shape& shape, const void* src,
                 const DatasetOptions& options = {});

  void attribute(std::string_view name, std::int64_t value);
  void attribute(std::string_view name, double value);
  void attribute(std::string_view name, const std::string& text);
  void attribute(std::string_view name, const std::vector<double>& values);
  void attribute(std::string_view name, const std::vector<std::string>& texts);

  // Flushes, closes, syncs and renames. The Writer is spent afterwards.
  void publish();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// Must come first in the process, before any other HDF5 call (main and test main call it): no exit handler, no error
// stack on standard error.
void initialise();

std::string library_version();  // "1.10.8"

}  // namespace echelon::h5
