// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/error.hpp"
#include "h5/faulty_driver.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

// UTF-8 with a fixed number of bytes, padded with zeros. Variable-length texts would be in heaps without checksums,
// where a flipped bit crashes the library.
Handle text_type(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(bytes, 1));
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

// Settings of a group: no times, so that equal content gives equal files, and all attributes in its header, which has a
// checksum.
void set_group(hid_t creation) {
  H5Pset_obj_track_times(creation, false);
  H5Pset_attr_phase_change(creation, 65535, 0);
}

// Selects a box of a dataspace: if two of its axes are folded, one block of the second per index of the first.
bool select(hid_t space, const VirtualBox& box) {
  const TensorRegion& region = box.region;
  Extents start{}, stride{}, count{}, block{};
  for (int axis = 0, of = 0; of < region.whole.rank(); ++axis, ++of) {
    const auto i = static_cast<std::size_t>(axis);
    const auto extent = [](std::int64_t value) { return static_cast<hsize_t>(value); };
    start[i] = extent(region.offset[of]), stride[i] = block[i] = extent(region.shape[of]), count[i] = 1;
    if (of != box.folded) continue;
    ++of;
    const hsize_t inner = extent(region.whole[of]);
    start[i] = start[i] * inner + extent(region.offset[of]);
    stride[i] = inner, count[i] = block[i], block[i] = extent(region.shape[of]);
  }
  return H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), stride.data(), count.data(), block.data()) >= 0;
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<int> count = 0;
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), count++);
}

}  // namespace

struct Writer::Body {
  std::string path, temporary;
  Handle file;
  struct Open {
    Handle handle;
    Shape shape;
  };
  std::map<std::string, Open, std::less<>> datasets;
  std::vector<std::string> reserved;
  bool failed = false;

  ~Body() { abandon(); }

  // Truncating the file first gives the library room on a full disk for its last writes, so that it can close. It is
  // truncated again afterwards, in case the library could not close and keeps the file open.
  void abandon() {
    if (temporary.empty()) return;
    quiet_thread();
    const auto empty = [&] { static_cast<void>(::truncate(temporary.c_str(), 0) == 0); };
    if (failed) empty();
    datasets.clear();
    file.close();
    if (failed) empty();
    ::unlink(temporary.c_str());
    temporary.clear();
  }
  [[noreturn]] void fail(const std::string& what, const std::string& why) {
    failed = true;
    abandon();
    throw EnvironmentError(fmt::format("{}: {}: {}", path, what, why));
  }
  void alive() const { ECHELON_CHECK(!temporary.empty(), "{}: the writer is already closed", path); }
  Open& find(std::string_view dataset) {
    alive();
    const auto found = datasets.find(dataset);
    ECHELON_CHECK(found != datasets.end(), "{}: dataset '{}' was not created", path, dataset);
    return found->second;
  }
  void attribute(std::string_view name, hid_t type, const Shape& shape, const void* data);
  void create(std::string_view dataset, DType dtype, const Shape& shape, hid_t creation);
  void close();
  void texts(std::string_view name, const std::vector<std::string>& texts, const Shape& shape);
  void create_groups(std::string_view dataset);
};

void Writer::Body::create_groups(std::string_view dataset) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  set_group(creation.id());
  for (std::size_t end = dataset.find('/'); end != std::string_view::npos; end = dataset.find('/', end + 1)) {
    const std::string group(dataset.substr(0, end));
    if (path_exists(file.id(), group) == true) continue;
    const Handle made(H5Gcreate2(file.id(), group.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose);
    if (!made.ok()) fail(fmt::format("group '{}' cannot be created", group), reason());
  }
}

void Writer::Body::attribute(std::string_view name, hid_t type, const Shape& shape, const void* data) {
  alive();
  quiet_thread();
  const std::string key(name);
  if (H5Aexists(file.id(), key.c_str()) > 0) H5Adelete(file.id(), key.c_str());
  const Handle space = space_of(shape);
  Handle attribute(H5Acreate2(file.id(), key.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.ok() || (shape.elems() > 0 && H5Awrite(attribute.id(), type, data) < 0) || !attribute.close())
    fail(fmt::format("attribute '{}' cannot be written", name), reason());
}

void Writer::Body::create(std::string_view dataset, DType dtype, const Shape& shape, hid_t creation) {
  ECHELON_CHECK(!datasets.contains(dataset), "{}: dataset '{}' is created twice", path, dataset);
  H5Pset_obj_track_times(creation, false);  // so that equal content gives equal files
  create_groups(dataset);
  const Handle space = space_of(shape);
  const std::string name(dataset);
  Handle made(H5Dcreate2(file.id(), name.c_str(), native_type(dtype), space.id(), H5P_DEFAULT, creation, H5P_DEFAULT),
              H5Dclose);
  if (!made.ok()) fail(fmt::format("dataset '{}' cannot be created", dataset), reason());
  datasets.emplace(name, Open{std::move(made), shape});
}

void Writer::Body::close() {
  for (auto& [name, dataset] : datasets)
    if (!dataset.handle.close()) fail(fmt::format("dataset '{}' cannot be written", name), reason());
  if (H5Fflush(file.id(), H5F_SCOPE_LOCAL) < 0 || !file.close()) fail("cannot be written", reason());
}

void Writer::Body::texts(std::string_view name, const std::vector<std::string>& all, const Shape& shape) {
  std::size_t longest = 1;
  for (const std::string& text : all) longest = std::max(longest, text.size());
  std::string block;
  for (const std::string& text : all) block += text + std::string(longest - text.size(), '\0');
  attribute(name, text_type(longest).id(), shape, block.data());
}

Writer::Writer(const std::string& path) : body_(std::make_unique<Body>()) {
  quiet_thread();
  body_->path = path;
  const std::string temporary = temporary_beside(path);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.id(), false, true);  // no other process opens the temporary file
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
  // The format of version 1.10: all headers and indexes have checksums.
  H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  set_group(creation.id());
  use_file_faults(access.id());
  ::unlink(temporary.c_str());  // may be left by an earlier process with this id
  body_->file = Handle(H5Fcreate(temporary.c_str(), H5F_ACC_EXCL, creation.id(), access.id()), H5Fclose);
  if (!body_->file.ok()) throw EnvironmentError(fmt::format("{}: cannot be written: {}", path, reason()));
  body_->temporary = temporary;
}
Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

void Writer::create(std::string_view dataset, DType dtype, const Shape& shape, const DatasetOptions& options) {
  body_->alive();
  quiet_thread();
  ECHELON_CHECK((options.deflate == 0 && !options.checksum) || options.chunk_rows > 0,
                "'{}': only chunks can be compressed or have checksums", dataset);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  if (options.chunk_rows > 0 && shape.rank() > 0) {
    const std::int64_t rows = std::clamp<std::int64_t>(options.chunk_rows, 1, std::max<std::int64_t>(shape[0], 1));
    Shape chunk = shape.with_front(rows);
    if (const int axis = options.slab_axis; axis > 0)
      chunk = chunk.with(axis, std::clamp<std::int64_t>(options.slab_rows, 1, std::max<std::int64_t>(shape[axis], 1)));
    H5Pset_chunk(creation.id(), shape.rank(), extents_of(chunk).data());
    if (options.deflate > 0 && size_of(dtype) > 1) H5Pset_shuffle(creation.id());
    if (options.deflate > 0) H5Pset_deflate(creation.id(), static_cast<unsigned>(options.deflate));
    if (options.checksum) H5Pset_fletcher32(creation.id());
  }
  body_->create(dataset, dtype, shape, creation.id());
}

void Writer::reserve(std::string_view dataset, DType dtype, const Shape& shape) {
  body_->alive();
  quiet_thread();
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER);
  body_->create(dataset, dtype, shape, creation.id());
  if (shape.elems() > 0) body_->reserved.emplace_back(dataset);
}

void Writer::create_virtual(std::string_view dataset, DType dtype, const std::vector<VirtualBox>& boxes) {
  body_->alive();
  quiet_thread();
  ECHELON_CHECK(!boxes.empty(), "'{}' has no source", dataset);
  const Shape whole = boxes.front().region.whole.folded(boxes.front().folded);
  ECHELON_CHECK_GE(whole.rank(), 1, "'{}' has no axes", dataset);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), space = space_of(whole);
  for (const VirtualBox& box : boxes) {
    const Shape held = box.region.shape.folded(box.folded);
    const Handle source = space_of(held);
    const Extents start{};  // a selection of everything would be stored without its axes
    if (!select(space.id(), box) ||
        H5Sselect_hyperslab(source.id(), H5S_SELECT_SET, start.data(), nullptr, extents_of(held).data(), nullptr) < 0 ||
        H5Pset_virtual(creation.id(), space.id(), box.file.c_str(), box.dataset.c_str(), source.id()) < 0)
      body_->fail(fmt::format("dataset '{}' cannot be created", dataset), reason());
  }
  body_->create(dataset, dtype, whole, creation.id());
}

std::vector<DatasetPlace> Writer::lay_out() {
  body_->alive();
  quiet_thread();
  std::vector<DatasetPlace> reserved;
  for (const std::string& name : body_->reserved) {
    const hid_t dataset = body_->find(name).handle.id();
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) body_->fail(fmt::format("dataset '{}' has no offset in the file", name), reason());
    reserved.push_back({name, offset, H5Dget_storage_size(dataset)});
  }
  body_->close();
  return reserved;
}

const std::string& Writer::temporary() const {
  body_->alive();
  return body_->temporary;
}

void Writer::write_region(std::string_view dataset, const Shape& offset, const Shape& shape, const void* src,
                          DType dtype) {
  quiet_thread();
  const Body::Open& to = body_->find(dataset);
  ECHELON_CHECK(offset.rank() == to.shape.rank() && shape.rank() == to.shape.rank(), "'{}' of {}: region {} at {}",
                dataset, to.shape.text(), shape.text(), offset.text());
  for (int axis = 0; axis < shape.rank(); ++axis)
    ECHELON_CHECK(offset[axis] + shape[axis] <= to.shape[axis], "'{}' of {}: region {} at {}", dataset, to.shape.text(),
                  shape.text(), offset.text());
  if (shape.elems() == 0) return;
  const Handle space(H5Dget_space(to.handle.id()), H5Sclose);
  const bool selected = shape.rank() == 0 || H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, extents_of(offset).data(),
                                                                 nullptr, extents_of(shape).data(), nullptr) >= 0;
  const Handle memory = space_of(shape);
  if (!selected || H5Dwrite(to.handle.id(), native_type(dtype), memory.id(), space.id(), H5P_DEFAULT, src) < 0)
    body_->fail(fmt::format("dataset '{}' cannot be written", dataset), reason());
}

void Writer::write_rows(std::string_view dataset, std::int64_t first, std::int64_t count, const void* src,
                        DType dtype) {
  const Shape whole = body_->find(dataset).shape;
  ECHELON_CHECK_GE(whole.rank(), 1, "'{}' has no rows", dataset);
  std::array<std::int64_t, Shape::kMaxRank> offset{};
  offset[0] = first;
  write_region(dataset, Shape(std::span(offset).first(static_cast<std::size_t>(whole.rank()))), whole.with_front(count),
               src, dtype);
}

void Writer::write_all(std::string_view dataset, DType dtype, const Shape& shape, const void* src,
                       const DatasetOptions& options) {
  create(dataset, dtype, shape, options);
  const std::array<std::int64_t, Shape::kMaxRank> zeros{};
  write_region(dataset, Shape(std::span(zeros).first(static_cast<std::size_t>(shape.rank()))), shape, src, dtype);
}

void Writer::attribute(std::string_view name, std::int64_t value) {
  body_->attribute(name, H5T_NATIVE_INT64, {}, &value);
}
void Writer::attribute(std::string_view name, double value) { body_->attribute(name, H5T_NATIVE_DOUBLE, {}, &value); }
void Writer::attribute(std::string_view name, const std::string& text) { body_->texts(name, {text}, {}); }
void Writer::attribute(std::string_view name, const std::vector<double>& values) {
  constexpr std::size_t kMost = 8000;  // more than 64 KiB would be stored without a checksum
  if (values.size() > kMost)
    body_->fail(fmt::format("attribute '{}' cannot be written", name),
                fmt::format("it has {} numbers, more than {}", values.size(), kMost));
  body_->attribute(name, H5T_NATIVE_DOUBLE, {static_cast<std::int64_t>(values.size())}, values.data());
}
void Writer::attribute(std::string_view name, const std::vector<std::string>& texts) {
  body_->texts(name, texts, {static_cast<std::int64_t>(texts.size())});
}

void Writer::publish() {
  body_->alive();
  quiet_thread();
  if (body_->file.ok()) body_->close();
  const std::string temporary = std::exchange(body_->temporary, {});
  publish_file(temporary, body_->path);  // deletes the temporary file on failure
}

}  // namespace echelon::h5
