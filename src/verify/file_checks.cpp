// SPDX-License-Identifier: Apache-2.0
// Checks what runs require of the file system of the verification's folder to write results and checkpoints.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "h5/file.hpp"
#include "verify/check.hpp"

namespace echelon::verify {
namespace {

constexpr int kControlChannel = 1;

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)), error_(errno) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int error() const { return error_; }

 private:
  int fd_, error_;
};

// Rank 0 writes a file, then replaces it; every rank must read each version whole.
std::string check_rename(VerifyContext& context) {
  Engine engine(context.transport());
  Group group(engine, kControlChannel);
  const std::string path = context.folder + "/renamed";
  for (const std::size_t bytes : {100001, 17}) {
    const std::string content(bytes, bytes > 17 ? 'a' : 'b');
    if (context.rank == 0) write_file_whole(path, content);
    group.barrier();
    const double until_s = now_s() + 5;  // NFS may show the old file until its attribute cache expires
    while (read_file_whole(path) != content && now_s() < until_s) ::usleep(10000);
    ECHELON_CHECK(read_file_whole(path) == content, "{}: rank {} does not read what rank 0 wrote", path, context.rank);
    group.barrier();
  }
  if (context.rank == 0)
    for (const auto& entry : std::filesystem::directory_iterator(context.folder))
      ECHELON_CHECK(entry.path().filename().string().find("renamed.tmp") == std::string::npos, "{} was left behind",
                    entry.path().string());
  return "";
}

std::string check_exclusive(VerifyContext& context) {
  Engine engine(context.transport());
  Group group(engine, kControlChannel);
  for (int round = 0; round < 5; ++round) {
    const std::string path = fmt::format("{}/exclusive-{}", context.folder, round);
    group.barrier();
    const File file(path, O_WRONLY | O_CREAT | O_EXCL);
    ECHELON_CHECK(file.ok() || file.error() == EEXIST, "{}: {}", path, std::strerror(file.error()));
    double made = file.ok() ? 1 : 0;
    group.sum({&made, 1});
    ECHELON_CHECK_EQ(made, 1.0, "O_EXCL gave one new file to several ranks, or to none");
  }
  return "";
}

bool lock(int fd, short kind) {
  struct flock whole = {};
  whole.l_type = kind;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

std::string check_locks(VerifyContext& context) {
  Engine engine(context.transport());
  Group group(engine, kControlChannel);
  const std::string path = context.folder + "/locked";
  if (context.rank == 0) write_file_whole(path, "x");
  group.barrier();
  const File first(path, O_RDWR), second(path, O_RDWR);
  ECHELON_CHECK(first.ok() && second.ok(), "{} cannot be opened", path);
  bool refused = false;
  if (context.rank == 0) refused = !lock(first.fd(), F_WRLCK);
  const bool offered = group.max(refused ? 1 : 0) == 0;
  if (!offered) needs(false, "the file system offers no locks; runs are guarded only by a heartbeat");
  ECHELON_CHECK(!lock(second.fd(), F_WRLCK), "rank {} on {} was given the lock that rank 0 on {} holds", context.rank,
                context.hosts[static_cast<std::size_t>(context.rank)], context.hosts.front());
  group.barrier();
  if (context.rank == 0) lock(first.fd(), F_UNLCK);
  group.barrier();
  ECHELON_CHECK(context.rank > 0 || lock(second.fd(), F_WRLCK), "a lock that was released cannot be taken again");
  group.barrier();
  return "";
}

std::string check_sync(VerifyContext& context) {
  const std::string path = fmt::format("{}/synced-{}", context.folder, context.rank);
  const std::string content(1 << 20, 's');
  const double begin_s = now_s();
  write_file_whole(path, content);
  const double seconds = now_s() - begin_s;
  ECHELON_CHECK(read_file_whole(path) == content, "{} does not hold what was written", path);
  return "1 MiB in " + seconds_text(seconds);
}

std::string check_space(VerifyContext& context) {
  struct statvfs system = {};
  ECHELON_CHECK(::statvfs(context.folder.c_str(), &system) == 0, "{}: {}", context.folder, std::strerror(errno));
  const double free = static_cast<double>(system.f_bavail) * static_cast<double>(system.f_frsize);
  constexpr double kLeast = 256.0 * 1024 * 1024;
  ECHELON_CHECK(free >= kLeast, "{} has {} left, but checkpoints need at least {}", context.folder, bytes_text(free),
                bytes_text(kLeast));
  return bytes_text(free) + " free";
}

std::string check_hdf5(VerifyContext& context) {
  const std::string path = fmt::format("{}/data-{}.h5", context.folder, context.rank);
  std::vector<float> values(70001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
  const auto n = static_cast<std::int64_t>(values.size());
  h5::Writer writer(path);
  writer.write_all("plain", DType::f32, {n}, values.data());
  writer.write_all("packed", DType::f32, {n}, values.data(), {.chunk_rows = 1000, .deflate = 1});
  writer.publish();
  const h5::Reader reader(path);
  for (const char* name : {"plain", "packed"}) {
    std::vector<float> back(values.size());
    reader.read_all(name, back.data(), DType::f32);
    ECHELON_CHECK(back == values, "{}: '{}' does not hold what was written", path, name);
  }
  return "HDF5 " + h5::library_version();
}

}  // namespace

std::vector<VerifyCheck> file_checks() {
  return {{"files", "written beside and renamed, seen by all ranks", check_rename},
          {"files", "O_EXCL gives a new file to one rank", check_exclusive},
          {"files", "locks exclude the other ranks", check_locks},
          {"files", "written and synced", check_sync},
          {"files", "free space", check_space},
          {"files", "HDF5, plain and compressed", check_hdf5}};
}

}  // namespace echelon::verify
