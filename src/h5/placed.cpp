// SPDX-License-Identifier: Apache-2.0
#include "h5/placed.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_faults.hpp"
#include "h5/faulty_driver.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {

namespace {

PlacedValues placed_at(hid_t file_id, std::uint64_t offset, const std::string& path) {
  const Handle access(H5Fget_access_plist(file_id), H5Pclose);
  const hid_t driver = H5Pget_driver(access.id());
  void* descriptor = nullptr;
  if (driver != H5FD_SEC2 && !is_faulty_driver(driver)) return {};
  if (H5Fget_vfd_handle(file_id, access.id(), &descriptor) < 0 || descriptor == nullptr) return {};
  return {.descriptor = *static_cast<const int*>(descriptor), .offset = offset, .path = path};
}

Handle file_with(hid_t dataset) { return {H5Iget_file_id(dataset), H5Fclose}; }

}  // namespace

PlacedValues placed_values(hid_t dataset, const std::string& path) {
  const haddr_t offset = H5Dget_offset(dataset);
  return offset == HADDR_UNDEF ? PlacedValues{} : placed_at(file_with(dataset).id(), offset, path);
}

PlacedValues chunk_file(hid_t dataset, const std::string& path) {
  const Handle file = file_with(dataset), creation(H5Fget_create_plist(file.id()), H5Pclose);
  hsize_t block = 0;
  if (H5Pget_userblock(creation.id(), &block) < 0 || block != 0) return {};
  return placed_at(file.id(), 0, path);
}

std::string read_placed(const PlacedValues& values, std::uint64_t at, std::size_t bytes, void* dst) {
  auto* const to = static_cast<std::uint8_t*>(dst);
  for (std::size_t have = 0; have < bytes;) {
    const std::uint64_t from = values.offset + at + have;
    const ssize_t got = ::pread(values.descriptor, to + have, bytes - have, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return fmt::format("the file ends before byte {}", from);
    have += static_cast<std::size_t>(got);
  }
  if (FileFaults* const faults = file_faults.load(std::memory_order_acquire); faults != nullptr)
    faults->have_read(values.path, dst, bytes);
  return "";
}

}  // namespace echelon::h5
