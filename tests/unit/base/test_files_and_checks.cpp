// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all; shapes; messages of failed checks.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/dims.hpp"
#include "base/error.hpp"
#include "base/shape.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using test::TempFolder;

namespace {

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

// While the object lives, files of this process cannot grow beyond `bytes`: to the process, the disk is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    before_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_{};
  void (*before_handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("a new file takes the place of a planted link, and the umask holds", "[file]") {
  const TempFolder folder;
  write_file_whole(folder / "other", "kept");
  std::filesystem::create_symlink(folder / "other", folder / "new");
  const mode_t before = ::umask(027);
  const int fd = create_file(folder / "new");
  ::umask(before);
  REQUIRE(fd >= 0);
  CHECK(::write(fd, "text", 4) == 4);
  ::close(fd);
  CHECK(read_file_whole(folder / "other") == "kept");
  CHECK(read_file_whole(folder / "new") == "text");
  CHECK(std::filesystem::symlink_status(folder / "new").type() == std::filesystem::file_type::regular);
  CHECK((std::filesystem::status(folder / "new").permissions() & std::filesystem::perms::mask) ==
        std::filesystem::perms(0640));
}

TEST_CASE("a file is written whole and replaced whole", "[file]") {
  const TempFolder folder;
  const std::string path = folder / "a.txt", bytes("line\n\0tail", 10);
  write_file_whole(path, "old");
  write_file_whole(path, bytes);
  CHECK(read_file_whole(path) == bytes);
  write_file_whole(path, "");
  CHECK(read_file_whole(path).empty());
  CHECK(files_in(folder.path()) == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a write that fails leaves the old file and nothing beside it", "[file]") {
  const TempFolder folder;
  const std::string path = folder / "a.txt";
  write_file_whole(path, "old");
  {
    const FullDisk full(1000);
    CHECK_THROWS_AS(write_file_whole(path, std::string(100000, 'x')), EnvironmentError);
    CHECK_THROWS_WITH(write_file_whole(path, std::string(100000, 'x')), Catch::Contains(path));
  }
  CHECK(read_file_whole(path) == "old");
  CHECK(files_in(folder.path()) == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a file cannot take the place of a folder, nor live in none", "[file]") {
  const TempFolder folder;
  make_folders(folder / "taken/inside");
  CHECK_THROWS_AS(write_file_whole(folder / "taken", "x"), EnvironmentError);
  CHECK(files_in(folder.path()) == std::vector<std::string>{"taken"});
  CHECK_THROWS_AS(write_file_whole(folder / "none/a.txt", "x"), EnvironmentError);
  CHECK_THROWS_AS(read_file_whole(folder / "none"), EnvironmentError);
  // This file can be opened, but a read of its first page fails.
  CHECK_THROWS_WITH(read_file_whole("/proc/self/mem"), Catch::Contains("/proc/self/mem: cannot be read: "));
  write_file_whole(folder / "file", "x");
  CHECK_THROWS_WITH(make_folders(folder / "file/below"), Catch::Contains("cannot be created"));
  CHECK_NOTHROW(make_folders(folder / "taken/inside"));
}

TEST_CASE("a path that leads out of its parent by a link is refused, a parent that is a link is not", "[file]") {
  const TempFolder folder;
  make_folders(folder / "in/here");
  make_folders(folder / "out");
  std::filesystem::create_directory_symlink("../out", folder / "in/away");
  std::filesystem::create_directory_symlink("here", folder / "in/near");
  std::filesystem::create_directory_symlink("in", folder / "linked");
  CHECK_NOTHROW(require_within(folder / "in", folder / "in/here/new/run"));
  CHECK_NOTHROW(require_within(folder / "in", folder / "in/near/run"));
  CHECK_NOTHROW(require_within(folder / "linked", folder / "linked/new"));
  CHECK_NOTHROW(require_within(folder / "none", folder / "none/new"));
  CHECK_THROWS_WITH(
      require_within(folder / "in", folder / "in/away/run"),
      Catch::Contains("in/away/run: a symbolic link leads from it out of") && Catch::Contains("remove the link"));
  CHECK_THROWS_AS(require_within(folder / "linked", folder / "linked/away"), EnvironmentError);
  CHECK_THROWS_AS(require_within(folder / "in", folder / "in/../out"), EnvironmentError);
}

TEST_CASE("publishing a file that is not there fails by name", "[file]") {
  const TempFolder folder;
  CHECK_THROWS_WITH(publish_file(folder / "none.tmp", folder / "a"), Catch::Contains("none.tmp"));
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("shapes", "[shape]") {
  const Shape shape{32, 3, 28, 14};
  CHECK(shape.rank() == 4);
  CHECK(shape.elems() == 32 * 3 * 28 * 14);
  CHECK(shape.row_elems() == 3 * 28 * 14);
  CHECK(shape.text() == "(32, 3, 28, 14)");
  CHECK(shape.with_front(5) == Shape{5, 3, 28, 14});
  CHECK(shape.without_front() == Shape{3, 28, 14});
  CHECK(Shape{3, 4}.prepended(2) == Shape{2, 3, 4});
  CHECK(Shape{}.elems() == 1);
  CHECK(Shape{}.without_front() == Shape{});
  CHECK(Shape{}.prepended(4) == Shape{4});
  CHECK(Shape{4, 0}.elems() == 0);
  CHECK_FALSE(Shape{4} == Shape{4, 1});
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1}), Error);
  CHECK_THROWS_AS((Shape{2, -1}), Error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1}.prepended(1)), Error);
}

TEST_CASE("window extents", "[shape]") {
  CHECK(window_extent(28, 5, 1, 0) == 24);
  CHECK(window_extent(7, 3, 2, 1) == 4);
  CHECK(window_extent(9, 3, 1, 0, 4) == 1);
  CHECK(window_extent(2, 3, 1, 0) == 0);
}

TEST_CASE("a failed check says file, condition, both operands, rank and hint", "[check]") {
  const int held = 3, wanted = 4;
  std::string text;
  std::thread rank([&] {
    set_thread_rank(2);
    try {
      ECHELON_CHECK_EQ(held, wanted, "arena of {}", "conv1");
    } catch (const Error& error) {
      text = error.what();
    }
  });
  rank.join();
  CHECK_THAT(text, Catch::Contains("test_files_and_checks.cpp:") && Catch::Contains("held == wanted") &&
                       Catch::Contains("3 against 4") && Catch::Contains("on rank 2") &&
                       Catch::Contains("arena of conv1"));
  CHECK(thread_rank() == -1);
}

TEST_CASE("checks evaluate their operands once and cost nothing when they hold", "[check]") {
  int calls = 0;
  const auto next = [&] { return ++calls; };
  ECHELON_CHECK_EQ(next(), 1);
  CHECK(calls == 1);
  CHECK_THROWS_WITH([] { ECHELON_CHECK(1 > 2); }(), Catch::Contains("1 > 2") && !Catch::Contains("rank"));
}

TEST_CASE("errors carry the exit code of their kind", "[check]") {
  CHECK(ConfigError("x").code() == 2);
  CHECK(EnvironmentError("x").code() == 3);
  CHECK(DataError("x").code() == 4);
  CHECK(NumericError("x").code() == 5);
  CHECK(MemoryError("x").code() == 6);
}

TEST_CASE("a scoped timer adds its lifetime", "[clock]") {
  double total = 1;
  {
    const ScopedTimer timer(total);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(total >= 1.005);
  CHECK(total < 2);
}
