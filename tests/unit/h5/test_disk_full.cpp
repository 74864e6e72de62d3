// SPDX-License-Identifier: Apache-2.0
// A disk that becomes full while a file is written: a clear error, nothing left, and the process goes on.
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "h5/file.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

// Mounts a file system of 256 KiB.
class SmallDisk {
 public:
  SmallDisk() : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=256k") == 0) {}
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const test::Folder& folder() const { return folder_; }

 private:
  test::Folder folder_;
  bool mounted_;
};

void write(const std::string& path, std::int64_t rows, const h5::DatasetOptions& options) {
  std::vector<double> values(static_cast<std::size_t>(rows) * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / (1.0 + static_cast<double>(i));
  h5::Writer writer(path);
  writer.attribute("format", std::string("test"));
  writer.create("rows", DType::f64, {rows, 16}, options);
  for (std::int64_t first = 0; first < rows; first += 16)
    writer.write_rows("rows", first, 16, values.data() + first * 16, DType::f64);
  writer.publish();
}

}  // namespace

TEST_CASE("disk full while writing is an EnvironmentError and leaves nothing behind", "[h5]") {
  const SmallDisk disk;
  if (test::skip_without(disk.mounted(), test::Lacks::right, "needs the right to mount a small tmpfs")) return;
  const test::Folder& folder = disk.folder();
  write(folder / "old.h5", 64, {});
  // Contiguous writes fail at once, chunks when the cache is flushed, and a small excess only at close.
  for (const auto& options : {h5::DatasetOptions{0, 0}, h5::DatasetOptions{16, 0}, h5::DatasetOptions{16, 1}})
    for (const std::int64_t rows : {1984, 4096, 65536}) {
      if (rows == 1984 && options.deflate > 0) continue;  // fits
      const std::string message = test::refusal<EnvironmentError>([&] { write(folder / "old.h5", rows, options); });
      INFO(rows << " rows, chunk " << options.chunk_rows << ", deflate " << options.deflate);
      REQUIRE_THAT(message,
                   Catch::Matchers::Contains("old.h5") && Catch::Matchers::Contains("No space left on device"));
      REQUIRE(folder.files() == std::vector<std::string>{"old.h5"});
    }
  // The old file is intact, the space is free again, and writing works.
  std::vector<double> back(64 * 16);
  h5::Reader(folder / "old.h5").read_rows("rows", 0, 64, back.data(), DType::f64);
  REQUIRE(back[3] == 0.25);
  REQUIRE(std::filesystem::space(folder.path()).available > 100 * 1024);
  write(folder / "again.h5", 64, {.chunk_rows = 16, .deflate = 1});
  REQUIRE(h5::Reader(folder / "again.h5").info("rows").shape == Shape{64, 16});
}

TEST_CASE("a folder that is missing or read-only is named with the system's reason", "[h5]") {
  const test::Folder folder;
  const auto message = [](const std::string& path) {
    return test::refusal<EnvironmentError>([&] { h5::Writer(path).publish(); });
  };
  REQUIRE_THAT(message(folder / "nowhere/a.h5"), Catch::Matchers::Contains("No such file or directory"));
  REQUIRE_THAT(message("/proc/a.h5"), Catch::Matchers::Contains("/proc/a.h5: cannot be written"));
  std::filesystem::create_directories(folder / "taken.h5/inside");
  REQUIRE_THAT(message(folder / "taken.h5"), Catch::Matchers::Contains("taken.h5"));
  REQUIRE(folder.files() == std::vector<std::string>{"taken.h5"});
}

TEST_CASE("a writer that is not published leaves nothing, also after being moved", "[h5]") {
  const test::Folder folder;
  {
    h5::Writer writer(folder / "a.h5");
    const double value = 1;
    writer.write_all("x", DType::f64, {1}, &value);
    h5::Writer other = std::move(writer);
    other.write_all("y", DType::f64, {1}, &value);
    REQUIRE(folder.files().size() == 1);
  }
  REQUIRE(folder.files().empty());
}

}  // namespace echelon
