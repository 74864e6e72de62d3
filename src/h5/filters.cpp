// SPDX-License-Identifier: Apache-2.0
#include "h5/filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace echelon::h5 {
namespace {

// A number in the HDF Group's registry of filters.
struct KnownFilter {
  H5Z_filter_t id;
  const char *name, *package;
};
constexpr KnownFilter kKnown[] = {
    {32001, "Blosc", "hdf5-filter-plugin-blosc-serial"},
    {32004, "LZ4", "hdf5-filter-plugin"},
    {307, "bzip2", "hdf5-filter-plugin"},
    {32008, "Bitshuffle", "hdf5-filter-plugin"},
    {32013, "ZFP", "hdf5-filter-plugin-zfp-serial"},
    {32015, "Zstandard", "python3-hdf5plugin"},
    {32026, "Blosc2", "python3-hdf5plugin"},
    {H5Z_FILTER_SZIP, "szip", ""},
};

}  // namespace

std::string missing_filter(hid_t creation) {
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0, configuration = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t id = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                           name.size() - 1, name.data(), &configuration);
    if (id < 0 || H5Zfilter_avail(id) > 0) continue;
    const auto* known =
        std::find_if(std::begin(kKnown), std::end(kKnown), [&](const KnownFilter& k) { return k.id == id; });
    const bool is_known = known != std::end(kKnown);
    const std::string called = is_known ? known->name : name[0] != '\0' ? name.data() : "unknown to this program";
    const std::string cure =
        is_known && known->package[0] != '\0'
            ? fmt::format("apt-get install {}, or name its folder in HDF5_PLUGIN_PATH", known->package)
            : "name the folder of its plugin in HDF5_PLUGIN_PATH";
    return fmt::format(
        "is compressed by the filter {} ({}), whose plugin is not installed: {}, or write the file "
        "again with gzip",
        called, id, cure);
  }
  return {};
}

}  // namespace echelon::h5
