// SPDX-License-Identifier: Apache-2.0
// Readers of folders and archives count all skipped files by kind, so that nothing is left out silently.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

struct PassedOver {
  std::string what;  // the kind, in the singular: "hidden file", ".webp file"
  std::int64_t count = 0;
  std::string first;  // path of the first one
};

// Adds to the entry of this kind.
void pass_over(std::vector<PassedOver>& all, const std::string& what, const std::string& path, std::int64_t count = 1);
void pass_over(std::vector<PassedOver>& all, const std::vector<PassedOver>& more);

// Returns ".webp file" or "file without an ending" for a file name. Endings are given in lower case.
std::string kind_of_file(const std::string& name);

// "12 .webp files, the first cat/1.webp; 1 hidden file, .DS_Store", most frequent kinds first; "" if there are none.
std::string passed_over_text(std::vector<PassedOver> all);

}  // namespace echelon::inline data
