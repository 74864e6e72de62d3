// SPDX-License-Identifier: Apache-2.0
#include "h5/open_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "h5/faulty_driver.hpp"

namespace echelon::h5 {
namespace {

// Versions 1, 2 and 5 of the format before netCDF-4.
bool is_classic_netcdf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), 3) == "CDF" && (magic[3] == 1 || magic[3] == 2 || magic[3] == 5);
}

std::string why_not_opened(const std::string& path) {
  const std::string why = reason();
  if (reason_has("unable to lock file") && reason_has(std::strerror(EWOULDBLOCK)))
    return fmt::format(
        "{}: another program has it open for writing and holds its lock; close it there, and start again (to list the "
        "programs that use the file: fuser {})",
        path, path);
  if (const std::string hint = hint_of_newer_library(); !hint.empty())
    return fmt::format("{}: cannot be opened: {}{}", path, why, hint);
  if (reason_has("truncated file")) return fmt::format("{}: is truncated ({})", path, why);
  if (H5Fis_hdf5(path.c_str()) == 0)
    return fmt::format("{}: is not an HDF5 file{}", path,
                       is_classic_netcdf(path) ? ", but classic netCDF: nccopy -k nc4 SOURCE TARGET converts it" : "");
  return fmt::format("{}: cannot be opened as HDF5: {}", path, why);
}

}  // namespace

std::string hint_of_newer_library() {
  if (!reason_has("bad version number") && !reason_has("bad superblock version number")) return {};
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format(
      "; either the file is damaged, or a newer HDF5 library wrote it in a format that {}.{}.{}, which reads it here, "
      "does "
      "not know (h5py: libver=\"latest\"): write it with libver=(\"earliest\", \"v110\"), or convert it with the newer "
      "library's h5repack --high=2",
      major, minor, release);
}

std::uint64_t refuse_unreadable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw DataError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) throw DataError(fmt::format("{}: is a folder, not an HDF5 file", path));
  if (status.st_size == 0) throw DataError(fmt::format("{}: is empty (0 bytes), not an HDF5 file", path));
  return static_cast<std::uint64_t>(status.st_size);
}

// The property list must outlive the error stack, because closing it would clear the stack.
Handle open_file(const std::string& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  use_file_faults(access.id());
  const auto open = [&](bool locking) {
    H5Pset_file_locking(access.id(), locking, true);
    return Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
  };
  Handle file = open(true);
  if (file.ok()) return file;
  if (!reason_has("unable to lock file") || reason_has(std::strerror(EWOULDBLOCK)))  // damaged, or being written
    throw DataError(why_not_opened(path));
  const std::string refused = reason();
  file = open(false);
  if (!file.ok()) throw DataError(why_not_opened(path));
  static std::atomic<bool> warned = false;
  if (!warned.exchange(true))
    log_warning("{}: read without a lock, because the file system refuses one: {}", path, refused);
  return file;
}

}  // namespace echelon::h5
