// SPDX-License-Identifier: Apache-2.0
#include "job/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "job/launch.hpp"

namespace echelon::inline job {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 4096;
constexpr double kRecordWait_s = 2;

// Differs between boots and machines, unlike names of hosts in containers.
std::string boot_id() {
  try {
    std::string id = read_file_whole("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
  } catch (const Error&) {
    return {};
  }
}

std::string own_record(const std::string& job) {
  const ordered_json json = {
      {"host", host_name()},     {"boot", boot_id()}, {"pid", static_cast<std::int64_t>(::getpid())}, {"job", job},
      {"since", now_utc_text()}, {"clock", now_s()}};  // distinguishes two processes with the same id
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

struct Holder {
  std::string host, boot, job, since;
  std::int64_t pid = 0;
  bool known = false;

  explicit Holder(const std::string& record) {
    const auto json = ordered_json::parse(record, nullptr, false);
    if (!json.is_object()) return;
    try {
      json.at("host").get_to(host);
      json.at("boot").get_to(boot);
      json.at("pid").get_to(pid);
      json.at("job").get_to(job);
      json.at("since").get_to(since);
      known = true;
    } catch (const nlohmann::json::exception&) {
    }
  }
  bool is_here() const { return boot == boot_id() && (!boot.empty() || host == host_name()); }
  std::string text() const {
    if (!known) return "another process";
    return fmt::format("process {} on {}{}, since {}", pid, host, job.empty() ? "" : " (job " + job + ")", since);
  }
};

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw EnvironmentError(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

[[noreturn]] void refuse(const RunLockOptions& options, const std::string& path, const std::string& record) {
  const std::string run = path.substr(0, path.rfind('/'));
  throw HeldError(fmt::format("{} {} by {}. Wait for it or stop it, or {}. If that process is gone, remove {}", run,
                              options.use, Holder(record).text(), options.advice, path));
}

enum class Locked { yes, held, unsupported };

// A lock of an open file description, so that it is not lost when this process opens and closes the file again.
Locked lock_whole(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return Locked::yes;
  return errno == EAGAIN || errno == EACCES ? Locked::held : Locked::unsupported;
}

// Returns "" if there is no such file. Opens it each time, so that NFS reads it from the server.
std::string read_record(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string record(kMostBytes, '\0');
  const ssize_t got = ::pread(fd, record.data(), record.size(), 0);
  ::close(fd);
  record.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return record;
}

// A holder that has just taken the kernel's lock writes its record a moment later.
std::string read_record_soon(const std::string& path) {
  std::string record = read_record(path);
  for (const double until = now_s() + kRecordWait_s; record.empty() && now_s() < until; record = read_record(path))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return record;
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// When the file was last renewed, by the file system's clock. Opens it each time, for NFS.
double renewed_s(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0) {
    ::fstat(fd, &status);
    ::close(fd);
  }
  return seconds_of(status.st_mtim);
}

// The current time by the clock that timestamps files there, which may be another machine's.
double file_system_now_s(const std::string& path) {
  const std::string probe = fmt::format("{}.tmp-{}", path, ::getpid());
  const int fd = create_file(probe);
  if (fd < 0) fail(probe, "cannot be written");
  struct stat status {};
  ::futimens(fd, nullptr);
  ::fstat(fd, &status);
  ::close(fd);
  ::unlink(probe.c_str());
  return seconds_of(status.st_mtim);
}

}  // namespace

void RunLock::take(const std::string& run, const std::string& job) {
  const std::string path = run + "/lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path, "cannot be written");
  try {
    const Locked locked = options_.kernel_locks ? lock_whole(fd_) : Locked::unsupported;
    if (locked == Locked::held) refuse(options_, path, read_record_soon(path));
    run_ = run;
    own_ = own_record(job);
    take_over(path, locked == Locked::yes);
  } catch (...) {
    ::close(fd_);
    fd_ = -1;
    throw;
  }
  stop_ = false;
  thread_ = std::thread([this] { beat(); });
}

// `locked`: the kernel has granted its lock, so no other process on this host holds the run.
void RunLock::take_over(const std::string& path, bool locked) {
  const std::string before = read_record(path);
  const Holder holder(before);
  if (holder.known && holder.is_here()) {
    if (!locked && (::kill(static_cast<pid_t>(holder.pid), 0) == 0 || errno == EPERM)) refuse(options_, path, before);
  } else if (holder.known) {
    wait_for_death(path, before);
  }
  if (holder.known) log_info("{} was held by {}, which has ended", run_, holder.text());
  if (::ftruncate(fd_, 0) != 0) fail(path, "cannot be written");
  write_at(fd_, path, own_.data(), own_.size(), 0);
  if (::fsync(fd_) != 0) fail(path, "cannot be written");
}

// Returns once the file has not changed for dead_s; throws if it is renewed meanwhile.
void RunLock::wait_for_death(const std::string& path, const std::string& record) const {
  const double last = renewed_s(path);
  const double left_s = options_.dead_s - (file_system_now_s(path) - last);
  if (left_s <= 0) return;
  log_info("{} is marked as held by {}; waiting up to {:.0f} s for a heartbeat", run_, Holder(record).text(), left_s);
  const double until = now_s() + left_s;
  while (now_s() < until) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.beat_s / 5));
    const std::string now = read_record(path);
    if (now.empty()) return;  // released
    if (now != record || renewed_s(path) != last) refuse(options_, path, now);
  }
}

void RunLock::confirm() const {
  if (fd_ < 0) return;
  const std::string path = run_ + "/lock", now = read_record(path);
  if (now == own_ || now.empty()) return;
  throw EnvironmentError(
      fmt::format("{} was taken over by {}: this process sent no heartbeat for {:.0f} s and stops writing", run_,
                  Holder(now).text(), options_.dead_s));
}

void RunLock::beat() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::duration<double>(options_.beat_s), [this] { return stop_; }))
    ::futimens(fd_, nullptr);
}

void RunLock::release() {
  if (fd_ < 0) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (read_record(run_ + "/lock") == own_ && ::ftruncate(fd_, 0) != 0)
    log_warning("{}/lock could not be emptied: {}", run_, std::strerror(errno));
  ::close(fd_);
  fd_ = -1;
}

}  // namespace echelon::inline job
