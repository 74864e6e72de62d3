// SPDX-License-Identifier: Apache-2.0
#include "data/import/fresh_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline data {

namespace fs = std::filesystem;

void require_free(const std::string& folder) {
  std::error_code error;
  const fs::file_type type = fs::status(folder, error).type();
  if (type == fs::file_type::none || type == fs::file_type::unknown)
    throw ConfigError(fmt::format("{}: cannot be used as the folder to write: {}", folder, error.message()));
  if (type != fs::file_type::not_found && !fs::is_empty(folder, error))
    throw ConfigError(fmt::format("{}: exists already and holds files; name a new folder or remove it first", folder));
}

FreshFolder::FreshFolder(const std::string& place) : place_(fs::path(place).lexically_normal().string()) {
  while (place_.size() > 1 && place_.back() == '/') place_.pop_back();
  if (const fs::path parent = fs::path(place_).parent_path(); !parent.empty()) make_folders(parent.string());
  temporary_ = fmt::format("{}.tmp-{}", place_, ::getpid());
  std::error_code error;
  fs::remove_all(temporary_, error);  // may be left by an earlier process with this id; removes a link, not its target
  if (!fs::create_directory(temporary_, error))
    throw EnvironmentError(fmt::format("{}: the folder cannot be created: {}", temporary_, error.message()));
}

FreshFolder::~FreshFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

std::string FreshFolder::now(const std::string& file) const { return (fs::path(temporary_) / file).string(); }
std::string FreshFolder::then(const std::string& file) const { return (fs::path(place_) / file).string(); }

void FreshFolder::publish() {
  std::error_code error;
  fs::rename(temporary_, place_, error);  // replaces an empty folder if there is one
  if (error) throw EnvironmentError(fmt::format("{}: cannot be moved into place: {}", place_, error.message()));
  temporary_.clear();
}

}  // namespace echelon::inline data
