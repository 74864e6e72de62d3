// Files appear whole or not at all: written beside, synced, renamed.
#pragma once

#include <string>
#include <string_view>

namespace echelon::inline base {

// Writes `content` to `path` by way of a temporary name in the same folder; on any failure the temporary file is
// removed, the old file stays, and an EnvironmentError names the path and the system's reason.
void write_file_whole(const std::string& path, std::string_view content);

// Renames an already written and closed temporary file over `path` after syncing it and, after, its folder. `why` as
// above.
void publish_file(const std::string& temporary, const std::string& path);

// Creates a folder and its parents. Throws EnvironmentError with the system's reason.
void make_folders(const std::string& path);

// Whole content of a small text file. Throws EnvironmentError.
std::string read_file_whole(const std::string& path);

}  // namespace echelon::inline base
