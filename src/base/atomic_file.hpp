// SPDX-License-Identifier: Apache-2.0
// Files appear whole or not at all: written under a temporary name in the same folder, synced (fsync) and renamed, then
// the folder is synced. Any thread; two writers of one path on one host do not interfere: the later rename wins.
//
// Every failure is an EnvironmentError "<path>: <what failed>: <system's reason>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon::inline base {

// Writes `content` to `path` with mode 0666 less the umask. On a failure the old file stays, and the temporary one,
// `<path>.tmp-<pid>-<n>`, is removed; a killed process leaves it behind. Blocks for two fsyncs.
void write_file_whole(const std::string& path, std::string_view content);

// The same for a temporary file that is written and closed, on the file system of `path`: syncs it, renames it over
// `path`, syncs the folder. It is removed on a failure before the rename; if only the last sync fails, the new file is
// in place.
void publish_file(const std::string& temporary, const std::string& path);

// Creates a new file with this mode less the umask. Removes a file that had its name, and never follows links. Returns
// the descriptor; -1 with errno on a failure.
int create_file(const std::string& path, unsigned mode = 0666);

// Writes `bytes` at `offset` of an open file; `path` is for the message. Throws EnvironmentError (disk full).
void write_at(int file, const std::string& path, const void* data, std::size_t bytes, std::uint64_t offset);
// Waits until the content of a file is on the disk. Throws EnvironmentError.
void sync_file(const std::string& path);

// Creates a folder and its parents; does not change existing ones.
void make_folders(const std::string& path);
// Throws EnvironmentError if links lead from `folder`, a path below `parent`, to a place outside of `parent`. Either
// may be missing; `parent` itself may be a link.
void require_within(const std::string& parent, const std::string& folder);

// Returns the whole content of a text file. Refuses a folder; a failure after the file was opened ends the content
// early without an error.
std::string read_file_whole(const std::string& path);

}  // namespace echelon::inline base
