// Readers of folders and archives count by kind all that they pass over, so that nothing is left out without a word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline data {

struct PassedOver {
  std::string what;  // of one: "hidden file", ".webp file"
  std::int64_t count = 0;
  std::string first;  // path
};

// Adds to the entry of this kind.
void pass_over(std::vector<PassedOver>& all, const std::string& what, const std::string& path, std::int64_t count = 1);
void pass_over(std::vector<PassedOver>& all, const std::vector<PassedOver>& more);

// ".webp file", "file without an ending", of a file name. Endings are told in lower case.
std::string kind_of_file(const std::string& name);

// "12 .webp files, the first cat/1.webp; 1 hidden file, .DS_Store"; "" of none. The most frequent kinds come first.
std::string passed_over_text(std::vector<PassedOver> all);

}  // namespace echelon::inline data
