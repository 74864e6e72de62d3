// SPDX-License-Identifier: Apache-2.0
// Reads and writes HDF5 files, typed and checked. Files appear whole or not at all. Only this room includes the
// library.
//
// Threads: any thread may call the functions; several threads may share a Reader, but only one may use a Writer. The
// library serialises its calls behind one lock. Errors: reading throws DataError with the file, the dataset and the
// problem; writing throws EnvironmentError with the system's reason (disk full) and removes the temporary file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "base/tensor_region.hpp"

namespace echelon::h5 {

struct DatasetInfo {
  std::string name;  // "samples", "weights/conv1.weight"
  Shape shape;
  DType dtype = DType::f32;
  std::string stored_as = {};  // "a 64-bit signed integer" if that is not a DType; read as `dtype`
  Shape chunk;                 // rank 0: contiguous
  bool deflate = false;        // compressed (gzip or lzf, alone or after byte shuffle)
  // Whether every chunk has a checksum (Fletcher32), which reading verifies; true for a dataset without elements.
  bool checksum = false;
  std::uint64_t stored_bytes = 0;
  // Number of chunks of the shape, and number of chunks that were written; a contiguous dataset is one chunk. Unwritten
  // chunks read as the fill value.
  std::uint64_t chunks = 1, written_chunks = 1;
  bool contiguous = false;  // all values lie in the file in one piece, and are read without the library

  // Whether reading one row after the other reads and decodes nothing twice.
  bool has_rows_apart() const { return contiguous || (chunk.rank() > 0 && chunk[0] == 1); }
};

// A part of the rows of a dataset, as the attribute `split` of Fuel's files names it.
struct NamedRows {
  std::string part, dataset;  // "train", "features"
  std::int64_t first = 0, end = 0;
  bool indexed = false;  // by a list of indices instead
};

// Rows that are bytes, each as long as it is: encoded images.
struct ByteRows {
  std::int64_t count = 0;
  std::int64_t width = 0;          // bytes of every row, padding included; 0: rows of different lengths
  std::uint64_t stored_bytes = 0;  // approximate if rows have different lengths: the size of the file
  bool numbers = false;            // they are 8-bit integers, which can be read as numbers too
};

// An open file for reading. If the file system refuses locks, it is opened without one, and the log gets a line.
class Reader {
 public:
  explicit Reader(const std::string& path);
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  const std::string& path() const;
  bool has(std::string_view dataset) const;   // DataError if the file is damaged there
  std::vector<DatasetInfo> datasets() const;  // all datasets of all groups, sorted by name
  std::vector<std::string> names() const;     // their names, also of those that `info` refuses
  // Throws DataError if the dataset is missing or its type is not a DType.
  DatasetInfo info(std::string_view dataset) const;
  // Throws DataError if rows were declared but never written, or lie in other files that are missing or incomplete:
  // such rows would read as zeros, unless the file's writer set another value for them (fill_of).
  void require_written(std::string_view dataset) const;

  // Returns the name of another file in which values of the dataset lie (an external link, a virtual dataset, raw
  // files); "" if all of them are in this file.
  std::string other_file(std::string_view dataset) const;

  // Reads rows [first, first + count) of the outermost axis into `dst`, (count, ..) of `dtype`, converting the values.
  // Uses memory for at most one chunk. Contiguous values are read without the library; chunks of whole rows that are
  // compressed or have a checksum are decoded and checked outside its lock. A damaged chunk is a DataError that names
  // its rows.
  void read_rows(std::string_view dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype) const;
  void read_all(std::string_view dataset, void* dst, DType dtype) const;
  // Reads a hyperslab into `dst`, (shape) of `dtype`: first index and extents, one entry per axis. Compressed chunks
  // and those with a checksum are read whole if some of their values are in it; of others only these values.
  void read_region(std::string_view dataset, const Shape& offset, const Shape& shape, void* dst, DType dtype) const;

  // Describes a dataset whose rows are bytes: (N) of variable length (h5py: vlen of uint8), (N) opaque, or (N, L) of
  // 8-bit integers. None: its rows are something else.
  std::optional<ByteRows> byte_rows(std::string_view dataset) const;
  // Reads rows [first, first + count) of such a dataset: `bytes` gets them one after the other, and `ends` the end of
  // each. Rows of variable length are read without the library and its lock.
  void read_bytes(std::string_view dataset, std::int64_t first, std::int64_t count, std::vector<std::uint8_t>& bytes,
                  std::vector<std::size_t>& ends) const;

  // Attributes of the root group. Throw DataError if one is missing or has another type.
  bool has_attribute(std::string_view name) const;
  std::int64_t attribute_int(std::string_view name) const;
  double attribute_double(std::string_view name) const;
  std::string attribute_text(std::string_view name) const;
  std::vector<double> attribute_doubles(std::string_view name) const;
  std::vector<std::string> attribute_texts(std::string_view name) const;

  // The numbers in an attribute of a dataset; empty if it has no such attribute.
  std::vector<double> numbers_of(std::string_view dataset, std::string_view attribute) const;
  // The texts in an attribute of a dataset; empty if it has no such attribute, or no texts there.
  std::vector<std::string> texts_of(std::string_view dataset, std::string_view attribute) const;
  // The value of rows that were never written, if the file's writer set one.
  std::optional<double> fill_of(std::string_view dataset) const;
  // The rows of the root attribute `split`; empty if there is none.
  std::vector<NamedRows> named_rows() const;

  // Bytes that have been read from the file's datasets so far; for compressed chunks of whole rows, the stored bytes.
  std::uint64_t bytes_read() const;
  // Number of calls by which the library has read values so far: none for contiguous ones, and for large chunks that
  // have only a checksum.
  std::uint64_t library_reads() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// The place of a dataset's values in a file: contiguous, in the host's byte order.
struct DatasetPlace {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;
};

// A box of a virtual dataset, and the dataset in another file that holds exactly its values, in the same order.
struct VirtualBox {
  std::string file, dataset;  // name of a file in the folder of the virtual dataset; it need not exist yet
  TensorRegion region;        // position in the whole dataset
  int folded = -1;            // the axes `folded` and `folded` + 1 of the region's shapes are one axis in both datasets
};

struct DatasetOptions {
  std::int64_t chunk_rows = 0;  // chunk size in rows of the outermost axis; 0: contiguous
  int deflate = 0;              // 0 none, 1 (fast) to 9 (small); needs chunk_rows > 0
  bool checksum = false;        // Fletcher32 of each chunk; needs chunk_rows > 0
  int slab_axis = 0;            // a second axis along which chunks divide the dataset, in slabs of slab_rows; 0: none
  std::int64_t slab_rows = 0;
};

// A file written under a temporary name beside `path`. `publish` renames it; the destructor deletes it if
// unpublished.
class Writer {
 public:
  explicit Writer(const std::string& path);
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  // Creates a dataset and the groups in its name. Rows that are never written read as 0.
  void create(std::string_view dataset, DType dtype, const Shape& shape, const DatasetOptions& options = {});
  // Writes rows [first, first + count) of the outermost axis, in any order. `dtype` is the type of `src`.
  void write_rows(std::string_view dataset, std::int64_t first, std::int64_t count, const void* src, DType dtype);
  // Writes a hyperslab of an existing dataset: first index and extents, one entry per axis.
  void write_region(std::string_view dataset, const Shape& offset, const Shape& shape, const void* src, DType dtype);
  // Creates the dataset and writes all rows.
  void write_all(std::string_view dataset, DType dtype, const Shape& shape, const void* src,
                 const DatasetOptions& options = {});

  // Creates a contiguous dataset whose values others write into the closed file (lay_out), without the library and its
  // lock.
  void reserve(std::string_view dataset, DType dtype, const Shape& shape);

  // Creates a dataset from boxes that must cover it exactly once (Reader checks it): at least one box, with elements
  // and axes.
  void create_virtual(std::string_view dataset, DType dtype, const std::vector<VirtualBox>& boxes);

  // Attributes of the root group.
  void attribute(std::string_view name, std::int64_t value);
  void attribute(std::string_view name, double value);
  void attribute(std::string_view name, const std::string& text);
  void attribute(std::string_view name, const std::vector<double>& values);
  void attribute(std::string_view name, const std::vector<std::string>& texts);

  // Flushes and closes the file, which then has its final size. Returns the offsets of the reserved datasets that have
  // values, in the order of their creation. Afterwards only the two functions below may be called.
  std::vector<DatasetPlace> lay_out();
  const std::string& temporary() const;  // path of the file until it is published

  // Flushes, closes, syncs and renames the file. Nothing may be called afterwards.
  void publish();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// Replaces attribute values of the root group of an existing file: numbers, as many as before, so that nothing in the
// file moves. Synced. If the process ends meanwhile, the file may become unreadable.
void rewrite_attributes(const std::string& path,
                        const std::vector<std::pair<std::string, std::vector<double>>>& attributes);

// Must be called before any other HDF5 call of the process. Turns off the library's exit handler and the printing of
// its error stack.
void initialise();

std::string library_version();  // "1.10.8"

}  // namespace echelon::h5
