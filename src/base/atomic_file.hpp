// Files appear whole or not at all: written under a temporary name in the same folder, synced (fsync), renamed, and the
// folder synced. Any thread; two writers of one path on one host do not disturb each other: the later rename stays.
//
// Every failure is an EnvironmentError "<path>: <what failed>: <reason of the system>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon::inline base {

// Writes `content` to `path`, mode 0666 but for the umask. On a failure the old file stays and the temporary one,
// `<path>.tmp-<pid>-<n>`, is removed; a process that is killed meanwhile leaves it behind. Blocks for two fsyncs.
void write_file_whole(const std::string& path, std::string_view content);

// The same for a temporary file that is already written and closed, on the same file system as `path`: syncs it,
// renames it over `path`, syncs the folder. Removed on a failure before the rename; where the last sync fails, the new
// file is in place all the same.
void publish_file(const std::string& temporary, const std::string& path);

// A new file to write, of this mode but for the umask: what had its name is removed first, and links are never
// followed. The descriptor; -1 with errno on a failure.
int create_file(const std::string& path, unsigned mode = 0666);

// Writes `bytes` at `offset` of an open file; `path` is for the message. EnvironmentError (disk full).
void write_at(int file, const std::string& path, const void* data, std::size_t bytes, std::uint64_t offset);
// Waits until the content of a file is on the disk. EnvironmentError.
void sync_file(const std::string& path);

// Creates a folder and its parents; those that exist are left as they are.
void make_folders(const std::string& path);
// EnvironmentError where links lead from `folder`, a path below `parent`, to a place outside of `parent`. Either may be
// missing yet; `parent` itself may be a link.
void require_within(const std::string& parent, const std::string& folder);

// Whole content of a text file, in memory. A folder is refused; a failure after the file was opened ends the content
// early without an error.
std::string read_file_whole(const std::string& path);

}  // namespace echelon::inline base
