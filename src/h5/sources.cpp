// SPDX-License-Identifier: Apache-2.0
#include "h5/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

namespace fs = std::filesystem;
constexpr int kDeepest = 8;  // nesting limit of virtual datasets

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw DataError(fmt::format("{} {}", where, what));
}

template <class Get>
std::string text_of(Get&& get) {
  const ssize_t bytes = get(nullptr, std::size_t{0});
  std::string text(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)) + 1, '\0');
  get(text.data(), text.size());
  text.pop_back();
  return text;
}

std::string source_name(hid_t creation, std::size_t mapping) {
  return text_of([&](char* to, std::size_t size) { return H5Pget_virtual_filename(creation, mapping, to, size); });
}

// Searches as the library does: HDF5_VDS_PREFIX, the folder of the virtual dataset's file, the working directory.
std::string source_file(const std::string& where, const std::string& path, const std::string& name) {
  if (name == ".") return path;
  std::vector<fs::path> candidates;
  if (const char* prefix = std::getenv("HDF5_VDS_PREFIX"); prefix != nullptr)
    candidates.push_back(fs::path(prefix) / name);
  if (fs::path(name).is_absolute())
    candidates.insert(candidates.end(), {fs::path(name), fs::path(path).parent_path() / fs::path(name).filename()});
  else
    candidates.insert(candidates.end(), {fs::path(path).parent_path() / name, fs::path(name)});
  std::error_code ignored;
  for (const fs::path& candidate : candidates)
    if (fs::exists(candidate, ignored)) return candidate.string();
  fail(where, fmt::format("is virtual and its source file {} is missing", name));
}

// Whether the selection of the source lies inside its extent. A whole source, as h5py writes it, is a selection without
// an extent: the source must then have as many elements as are mapped.
bool inside(hid_t selection, hid_t mapped, const Shape& shape) {
  if (H5Sget_select_type(selection) == H5S_SEL_ALL) return H5Sget_select_npoints(mapped) == shape.elems();
  const int rank = H5Sget_simple_extent_ndims(selection);
  if (rank != shape.rank()) return false;
  Extents low{}, high{};
  if (H5Sget_select_bounds(selection, low.data(), high.data()) < 0) return false;
  for (int axis = 0; axis < rank; ++axis)
    if (high[static_cast<std::size_t>(axis)] >= static_cast<hsize_t>(shape[axis])) return false;
  return true;
}

// The union of the mapped regions.
class Coverage {
 public:
  explicit Coverage(hid_t space) : covered_(H5Scopy(space), H5Sclose) { H5Sselect_none(covered_.id()); }

  // Returns false if the selection is not a finite set of boxes.
  bool add(hid_t selection) {
    if (H5Sget_select_type(selection) == H5S_SEL_ALL) return H5Sselect_all(covered_.id()) >= 0;
    if (H5Sget_select_type(covered_.id()) == H5S_SEL_ALL) return true;
    if (H5Sget_select_npoints(selection) < 0) return false;
    if (H5Sget_select_type(covered_.id()) == H5S_SEL_NONE) {
      covered_ = Handle(H5Scopy(selection), H5Sclose);
      return covered_.ok();
    }
    Handle both(H5Scombine_select(covered_.id(), H5S_SELECT_OR, selection), H5Sclose);
    if (!both.ok()) return false;
    covered_ = std::move(both);
    return true;
  }
  hssize_t elems() const { return H5Sget_select_npoints(covered_.id()); }

 private:
  Handle covered_;
};

}  // namespace

bool check_virtual_sources(const std::string& where, const std::string& path, hid_t space, hid_t creation) {
  thread_local int depth = 0;
  if (depth >= kDeepest) fail(where, fmt::format("is virtual, with more than {} levels of virtual sources", kDeepest));
  std::size_t mappings = 0;
  if (H5Pget_virtual_count(creation, &mappings) < 0) fail(where, "is virtual, and its mappings cannot be read");
  Coverage coverage(space);
  bool checksums = true;
  for (std::size_t i = 0; i < mappings; ++i) {
    const std::string name = source_name(creation, i);
    const auto dataset =
        text_of([&](char* to, std::size_t size) { return H5Pget_virtual_dsetname(creation, i, to, size); });
    const Handle mapped(H5Pget_virtual_vspace(creation, i), H5Sclose);
    const Handle from(H5Pget_virtual_srcspace(creation, i), H5Sclose);
    if (name.find('%') != std::string::npos || dataset.find('%') != std::string::npos || !coverage.add(mapped.id()))
      fail(where, fmt::format(
                      "is virtual, and nothing tells whether its sources '{}' of {} are complete: list them one by one",
                      dataset, name));
    const std::string file = source_file(where, path, name);
    ++depth;
    try {
      const Reader source(file);
      source.require_written(dataset);
      const DatasetInfo info = source.info(dataset);
      if (!inside(from.id(), mapped.id(), info.shape))
        fail(where, fmt::format("is virtual, and its mapping does not fit '{}' of {}, whose shape is {}", dataset, file,
                                info.shape.text()));
      checksums &= info.checksum;
    } catch (const Error& wrong) {
      --depth;
      if (std::string_view(wrong.what()).starts_with(where)) throw;
      fail(where, fmt::format("is virtual and its source is invalid: {}", wrong.what()));
    }
    --depth;
  }
  const hssize_t all = H5Sget_simple_extent_npoints(space);
  if (coverage.elems() < all)
    fail(where, fmt::format("is virtual, and {} of its {} elements have no source", all - coverage.elems(), all));
  return checksums;
}

void require_sources(const std::string& where, const std::string& path, hid_t creation) {
  std::size_t mappings = 0;
  if (H5Pget_virtual_count(creation, &mappings) < 0) fail(where, "is virtual, and its mappings cannot be read");
  for (std::size_t i = 0; i < mappings; ++i) (void)source_file(where, path, source_name(creation, i));
}

std::string first_other_source(hid_t creation, bool is_virtual) {
  std::size_t mappings = 0;
  if (is_virtual && H5Pget_virtual_count(creation, &mappings) >= 0)
    for (std::size_t i = 0; i < mappings; ++i)
      if (std::string name = source_name(creation, i); name != ".") return name;
  std::array<char, 4096> name{};
  off_t offset = 0;
  hsize_t bytes = 0;
  if (!is_virtual && H5Pget_external_count(creation) > 0)
    H5Pget_external(creation, 0, name.size() - 1, name.data(), &offset, &bytes);
  return name.data();
}

void check_external_files(const std::string& where, hid_t creation) {
  const int files = H5Pget_external_count(creation);
  for (int i = 0; i < files; ++i) {
    std::array<char, 4096> name{};
    off_t offset = 0;
    hsize_t bytes = 0;
    if (H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &bytes) < 0)
      fail(where, "lies in other files, whose names cannot be read");
    std::error_code error;
    const std::uintmax_t size = fs::file_size(name.data(), error);
    if (error) fail(where, fmt::format("lies in the file {}: {}", name.data(), error.message()));
    if (bytes != H5F_UNLIMITED && size < static_cast<std::uintmax_t>(offset) + bytes)
      fail(where, fmt::format("lies in the file {}, which has {} bytes instead of {}", name.data(), size,
                              static_cast<std::uintmax_t>(offset) + bytes));
  }
}

}  // namespace echelon::h5
