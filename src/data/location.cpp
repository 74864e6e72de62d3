// SPDX-License-Identifier: Apache-2.0
#include "data/location.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.hpp"
#include "base/lower_case.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
}

// Ignores case, because a file that is not recognised would be left out silently.
bool is_shard_name(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending == ".h5" || ending == ".hdf5" || ending == ".nc" || ending == ".nc4";
}

bool begins_as_hdf5(const std::string& path) {
  constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
  std::array<char, kSignature.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == kSignature;
}

bool holds_shards(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (is_shard_name(entry->path()) && !entry->is_directory(unreadable)) return true;
  }
  return false;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files, folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;  // a loop of links is reported when it is opened
    const bool is_folder = entry->is_directory(unreadable);
    if (is_folder) folders.push_back(entry->path().filename());
    if (is_shard_name(entry->path()) && !is_folder) files.push_back(entry->path().string());
  }
  if (error) fail(folder, "the folder cannot be read: " + error.message());
  if (!files.empty()) return files;
  std::sort(folders.begin(), folders.end());
  fail(folder, folders.empty() ? "the folder holds no .h5 or .hdf5 file"
                               : fmt::format("the folder holds no .h5 or .hdf5 file, only folders; did you mean {}?",
                                             (fs::path(folder) / folders.back()).string()));
}

std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0 || files.empty()) fail(pattern, "no file matches this pattern");
  return files;
}

std::vector<std::string> files_meant(const std::string& location) {
  std::error_code error;
  const fs::file_type type = fs::status(location, error).type();
  if (type == fs::file_type::none || type == fs::file_type::unknown)
    fail(location, "cannot be read: " + error.message());
  if (type == fs::file_type::directory) return files_in(location);
  if (type == fs::file_type::not_found && location.find_first_of("*?[") != std::string::npos)
    return files_like(location);
  return {location};
}

}  // namespace

std::vector<std::string> location_warnings(const std::string& location) {
  std::vector<PassedOver> passed;
  std::error_code error;
  if (!fs::is_directory(location, error)) return {};
  for (fs::directory_iterator entry(location, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code unreadable;
    if (entry->is_directory(unreadable)) {
      if (holds_shards(path)) pass_over(passed, "folder with shards", path);
    } else if (!is_shard_name(path) && entry->is_regular_file(unreadable) && begins_as_hdf5(path)) {
      pass_over(passed, kind_of_file(path), path);
    }
  }
  if (passed.empty()) return {};
  return {fmt::format("{}: skipped: {}; shards are the files *.h5 and *.hdf5 of the folder itself", location,
                      passed_over_text(passed))};
}

std::vector<std::string> files_at(const std::string& location) {
  std::vector<std::string> files = files_meant(location);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace echelon::inline data
