// SPDX-License-Identifier: Apache-2.0
// Copies of shards on a host's own disk (data/stage_folder.hpp).
#include "data/stage_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Outcome = StageFolder::Outcome;

std::string make_shard(const test::TempFolder& folder, const std::string& name, std::size_t bytes, char content = 'x') {
  const std::string path = folder / name;
  write_file_whole(path, std::string(bytes, content));
  return path;
}

void use_at(const std::string& path, std::time_t second) {
  const timespec times[] = {{second, 0}, {second, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("a shard is copied once, and again when it has changed", "[data][stage]") {
  const test::TempFolder source, disk;
  const std::string shard = make_shard(source, "a.h5", (4 << 20) + 17);
  {
    StageFolder folder(disk.path(), 0);
    CHECK(folder.add(shard) == Outcome::copied);
    CHECK(folder.add(shard) == Outcome::reused);
    const std::string copy = folder.path_of(shard);
    CHECK(fs::path(copy).filename() == "a.h5");
    CHECK(read_file_whole(copy) == read_file_whole(shard));
    CHECK(fs::status(fs::path(copy).parent_path().parent_path()).permissions() == fs::perms::owner_all);
  }
  StageFolder later(disk.path(), 0);
  CHECK(later.add(shard) == Outcome::reused);
  const std::string before = later.path_of(shard);
  make_shard(source, "a.h5", (4 << 20) + 17, 'y');
  use_at(shard, 1'700'000'000);
  CHECK(later.add(shard) == Outcome::copied);
  CHECK(later.path_of(shard) != before);
  CHECK(read_file_whole(later.path_of(shard)) == read_file_whole(shard));
  CHECK_THROWS_AS(later.add(source / "none.h5"), DataError);
}

TEST_CASE("where room is needed the least recently used copies go, but none that a run holds", "[data][stage]") {
  const test::TempFolder source, disk;
  const std::string a = make_shard(source, "a.h5", 1000), b = make_shard(source, "b.h5", 1000);
  const std::string c = make_shard(source, "c.h5", 1000), large = make_shard(source, "large.h5", 4000);
  {
    StageFolder first(disk.path(), 2500);
    CHECK(first.add(a) == Outcome::copied);
    CHECK(first.add(b) == Outcome::copied);
    use_at(first.path_of(a), 2'000);
    use_at(first.path_of(b), 1'000);
    CHECK(first.add(c) == Outcome::no_room);  // both are held
  }
  StageFolder second(disk.path(), 2500);
  const std::string tmp = fs::path(second.path_of(a)).parent_path().string() + "/a.h5.tmp-1";
  write_file_whole(tmp, "left behind");
  use_at(tmp, 1'000);
  CHECK(second.add(c) == Outcome::copied);
  CHECK(fs::exists(second.path_of(a)));
  CHECK_FALSE(fs::exists(second.path_of(b)));
  CHECK_FALSE(fs::exists(tmp));
  CHECK(second.add(large) == Outcome::no_room);
}

TEST_CASE("a folder of copies that is a link is refused", "[data][stage]") {
  const test::TempFolder disk, elsewhere;
  fs::create_directory_symlink(elsewhere.path(), disk.path() + "/echelon-stage-" + std::to_string(::geteuid()));
  CHECK_THROWS_AS(StageFolder(disk.path(), 0), EnvironmentError);
}

}  // namespace echelon
