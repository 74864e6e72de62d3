// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/error.hpp"
#include "h5/faulty_driver.hpp"
#include "h5/file.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw EnvironmentError(fmt::format("{}: {}: {}", path, what, reason()));
}

void rewrite(const std::string& path, hid_t file, const std::string& name, const std::vector<double>& values) {
  const Handle attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute.ok()) fail(path, fmt::format("attribute '{}' cannot be opened", name));
  const Handle space(H5Aget_space(attribute.id()), H5Sclose);
  ECHELON_CHECK_EQ(H5Sget_simple_extent_npoints(space.id()), static_cast<hssize_t>(values.size()), "{}: attribute '{}'",
                   path, name);
  if (H5Awrite(attribute.id(), H5T_NATIVE_DOUBLE, values.data()) < 0)
    fail(path, fmt::format("attribute '{}' cannot be written", name));
}

}  // namespace

void rewrite_attributes(const std::string& path,
                        const std::vector<std::pair<std::string, std::vector<double>>>& attributes) {
  quiet_thread();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.id(), false, true);
  H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG);
  H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  use_file_faults(access.id());
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()), H5Fclose);
  if (!file.ok()) fail(path, "cannot be opened to change it");
  for (const auto& [name, values] : attributes) rewrite(path, file.id(), name, values);
  if (H5Fflush(file.id(), H5F_SCOPE_LOCAL) < 0 || !file.close()) fail(path, "cannot be written");
  sync_file(path);
}

}  // namespace echelon::h5
