// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "job/run_lock.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

constexpr RunLockOptions kQuick = {.beat_s = 0.05, .dead_s = 0.4};
constexpr RunLockOptions kPatient = {.beat_s = 0.05, .dead_s = 60};  // a watcher of the holder takes a minute
constexpr double kAtOnce_s = 30;                                     // even on a busy machine

std::string elsewhere(const char* host) {
  return std::string("{\"host\":\"") + host +
         R"(","boot":"another","pid":77,"job":"4711","since":"2024-02-03T04:05:06Z"})";
}

TEST_CASE("a second process is refused and told who holds the run", "[train]") {
  const test::TempFolder folder;
  const bool kernel_locks = GENERATE(true, false);
  const RunLockOptions options{.beat_s = 0.05, .dead_s = 0.4, .kernel_locks = kernel_locks};
  RunLock first(options), second(options);
  first.take(folder.path(), "4711");
  CHECK_THROWS_AS(second.take(folder.path(), ""), EnvironmentError);
  CHECK_THROWS_WITH(second.take(folder.path(), ""),
                    Catch::Contains("process " + std::to_string(::getpid())) && Catch::Contains("job 4711") &&
                        Catch::Contains(" on ") && Catch::Contains("since 20") && Catch::Contains(folder / "lock"));
  CHECK_NOTHROW(first.confirm());
  first.release();
  CHECK(read_file_whole(folder / "lock").empty());
  CHECK_NOTHROW(second.take(folder.path(), ""));
  CHECK_THROWS_AS(first.take(folder.path(), ""), EnvironmentError);
}

TEST_CASE("a holder that has the lock but has not written its record yet is named once it has", "[train]") {
  const test::TempFolder folder;
  RunLock first(kQuick), second(kQuick);
  first.take(folder.path(), "4711");
  const std::string record = read_file_whole(folder / "lock");
  std::filesystem::resize_file(folder / "lock", 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::ofstream(folder / "lock") << record;
  });
  CHECK_THROWS_WITH(second.take(folder.path(), ""), Catch::Contains("job 4711"));
  writer.join();
}

TEST_CASE("a holder on this host that is gone holds nothing", "[train]") {
  const test::TempFolder folder;
  std::string record;
  {
    RunLock held(kQuick);
    held.take(folder.path(), "");
    record = read_file_whole(folder / "lock");
  }
  std::ofstream(folder / "lock") << record;  // as after kill -9: the record stays, but the kernel's lock is gone
  RunLock lock(kPatient);
  const double start = now_s();
  CHECK_NOTHROW(lock.take(folder.path(), ""));
  CHECK(now_s() - start < kAtOnce_s);
}

TEST_CASE("a holder on another host is dead once its heartbeat has stopped", "[train]") {
  const test::TempFolder folder;
  RunLock lock(kQuick);
  std::ofstream(folder / "lock") << elsewhere("node7");
  SECTION("it was renewed just now: watched, then taken") {
    const double start = now_s();
    lock.take(folder.path(), "");
    CHECK(now_s() - start > 0.25);
  }
  SECTION("it was renewed long ago: taken at once") {
    std::filesystem::last_write_time(folder / "lock",
                                     std::filesystem::file_time_type::clock::now() - std::chrono::minutes(10));
    RunLock patient(kPatient);
    const double start = now_s();
    patient.take(folder.path(), "");
    CHECK(now_s() - start < kAtOnce_s);
  }
  SECTION("it is renewed: refused, by name") {
    std::atomic<bool> stop = false;
    std::thread beats([&] {
      while (!stop) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        ::utimensat(AT_FDCWD, (folder / "lock").c_str(), nullptr, 0);
      }
    });
    CHECK_THROWS_WITH(lock.take(folder.path(), ""),
                      Catch::Contains("process 77 on node7 (job 4711), since 2024-02-03"));
    stop = true;
    beats.join();
    CHECK(read_file_whole(folder / "lock") == elsewhere("node7"));
  }
}

TEST_CASE("a holder that was taken for dead writes no more", "[train]") {
  const test::TempFolder folder;
  RunLock lock(kQuick);
  CHECK_NOTHROW(lock.confirm());  // no lock was taken
  lock.take(folder.path(), "");
  CHECK_NOTHROW(lock.confirm());
  std::ofstream(folder / "lock", std::ios::trunc) << elsewhere("node8");
  CHECK_THROWS_AS(lock.confirm(), EnvironmentError);
  CHECK_THROWS_WITH(lock.confirm(), Catch::Contains("taken over by process 77 on node8"));
  lock.release();
  CHECK(read_file_whole(folder / "lock") == elsewhere("node8"));  // it must not empty another's record
}

TEST_CASE("a record that nobody can read holds nothing where the kernel's lock is free", "[train]") {
  const test::TempFolder folder;
  std::ofstream(folder / "lock") << "{\"host\": 7, \"bo";
  RunLock lock(kQuick);
  CHECK_NOTHROW(lock.take(folder.path(), ""));
}

TEST_CASE("the heartbeat renews the lock's file", "[train]") {
  const test::TempFolder folder;
  RunLock lock(kQuick);
  lock.take(folder.path(), "");
  const auto before = std::filesystem::last_write_time(folder / "lock");
  const double start = now_s();
  while (std::filesystem::last_write_time(folder / "lock") == before && now_s() - start < 5)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(std::filesystem::last_write_time(folder / "lock") > before);
}

}  // namespace
}  // namespace echelon
