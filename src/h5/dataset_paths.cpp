// SPDX-License-Identifier: Apache-2.0
#include "h5/dataset_paths.hpp"

#include <algorithm>
#include <set>

#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

constexpr std::size_t kLongestPath = 4096;

struct Walk {
  std::set<haddr_t> seen;
  std::vector<std::string> datasets;
};

// Collects the names of the hard links of a group.
herr_t take_link(hid_t, const char* name, const H5L_info_t* info, void* into) {
  if (info->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(into)->emplace_back(name);
  return 0;
}

bool walk_group(hid_t group, const std::string& prefix, Walk& walk) {
  std::vector<std::string> names;
  hsize_t first = 0;
  if (prefix.size() > kLongestPath || H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &first, take_link, &names) < 0)
    return false;
  for (const std::string& name : names) {
    H5O_info_t info{};
    if (H5Oget_info_by_name2(group, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return false;
    if (!walk.seen.insert(info.addr).second) continue;
    if (info.type == H5O_TYPE_DATASET) walk.datasets.push_back(prefix + name);
    if (info.type != H5O_TYPE_GROUP) continue;
    const Handle inner(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose);
    if (!inner.ok() || !walk_group(inner.id(), prefix + name + "/", walk)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> dataset_paths(hid_t file) {
  Walk walk;
  H5O_info_t root{};
  const Handle group(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  if (!group.ok() || H5Oget_info2(group.id(), &root, H5O_INFO_BASIC) < 0) return {};
  walk.seen.insert(root.addr);
  if (!walk_group(group.id(), "", walk)) return {};
  std::sort(walk.datasets.begin(), walk.datasets.end());
  return walk.datasets;
}

}  // namespace echelon::h5
