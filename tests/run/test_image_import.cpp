// SPDX-License-Identifier: Apache-2.0
// Imports of images as a user runs them: under mpirun, killed and repeated, beside another import, then trained on.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/images.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Outcome;
namespace fs = std::filesystem;

void write_folder(const test::TempFolder& folder, int images) {
  for (int i = 0; i < images; ++i)
    test::put_file(folder / ("in/" + std::string(1, static_cast<char>('a' + i % 4)) + "/" + std::to_string(i) +
                             (i % 2 == 0 ? ".png" : ".jpg")),
                   test::any_image(i, "run " + std::to_string(i)));
}

Outcome imported(const test::TempFolder& folder, int ranks, std::vector<std::string> words,
                 const test::Environment& env = {}) {
  words.insert(words.begin(), {"data", "import"});
  return test::run_echelon(words, {.ranks = ranks, .cwd = folder.path(), .env = env});
}

bool same_files(const std::string& a, const std::string& b) {
  for (const auto& entry : fs::recursive_directory_iterator(a)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(a).string();
    if (test::file_content(a + "/" + name) != test::file_content(b + "/" + name)) return false;
  }
  return true;
}

TEST_CASE("images are imported under mpirun as by one process, told about, read back and trained on",
          "[run][data][image]") {
  const test::TempFolder folder;
  write_folder(folder, 64);
  const std::vector<std::string> words = {"images", "in",       "--size",          "12x10", "--samples-per-shard",
                                          "8",      "--verify", "--hold-out-part", "0.125", "--compress",
                                          "1"};
  const auto into = [&](const std::string& out) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--out", out});
    return all;
  };
  const Outcome one = imported(folder, 0, into("one"), {{"ECHELON_RUN_HEARTBEAT_S", "0.00001"}});
  INFO(one.out << one.err);
  REQUIRE(one.code == 0);
  CHECK_THAT(one.out, Contains("64 samples of (3, 12, 10) u8, 4 classes, in 8 files") &&
                          Contains("8 of them held out for testing") && Contains("verified: ") &&
                          Contains("import, first look: ") && Contains(" of 64 images, "));
  const Outcome three = imported(folder, 3, into("three"));
  INFO(three.out << three.err);
  REQUIRE(three.code == 0);
  CHECK(three.out.find("64 samples") == three.out.rfind("64 samples"));
  CHECK(same_files(folder / "one", folder / "three"));
  const Outcome seen = test::run_echelon({"data", "inspect", folder / "three/train", "--verify"});
  CHECK_THAT(seen.out, Contains("0 damaged, 0 without checksums"));
  CHECK_THAT(test::run_echelon({"data", "inspect", folder / "three/train"}).out,
             Contains("25.0 %") && Contains("name"));
  std::ofstream(folder / "c.toml") << "name = \"c\"\n[data]\ntrain = \"three/train\"\ntest = \"three/test\"\n"
                                      "[batch]\nglobal = 16\n[train]\nepochs = 2\n"
                                      "[[model.layers]]\ntype = \"flatten\"\n"
                                      "[[model.layers]]\ntype = \"dense\"\nunits = 4\n";
  const Outcome trained = test::run_echelon({"train", "c.toml"}, {.ranks = 2, .cwd = folder.path()});
  INFO(trained.out << trained.err);
  CHECK(trained.code == 0);
}

TEST_CASE("an import that is killed goes on where it was; none writes into the folder of another",
          "[run][data][image]") {
  const test::TempFolder folder;
  write_folder(folder, 60);
  const std::vector<std::string> words = {"images", "in", "--size", "9", "--samples-per-shard", "5", "--out", "out"};
  const std::string waits = folder / "in/b/0.png", picture = test::any_image(2, "in place of the pipe");
  test::put_file(waits, picture);
  fs::remove(waits);
  REQUIRE(::mkfifo(waits.c_str(), 0600) == 0);  // reading it blocks until the import is killed

  std::string command;
  std::vector<std::string> all = words;
  all.insert(all.begin(), {"data", "import"});
  const test::Command launch = test::mpirun(2, all);
  for (const std::string& word : launch.argv) command += "'" + word + "' ";
  std::string other = "'" + test::echelon_binary() + "' data import";
  for (const std::string& word : words) other += " " + word;
  const std::string script = command + R"SH(> first.txt 2>&1 &
pid=$!
for i in $(seq 1500); do [ "$(find out.importing/made -name '*.h5' 2>/dev/null | wc -l)" -ge 6 ] && break;
  sleep 0.02; done
)SH" + other + R"SH(; echo second: $?
for child in $(pgrep -P $pid); do kill -9 $child; done
wait $pid
echo first: $?
ls out 2>&1
)SH";
  const Outcome killed =
      test::run_process({.argv = {"bash", "-c", script}, .cwd = folder.path(), .env = launch.env, .limit_s = 60});
  INFO(killed.out << killed.err << test::file_content(folder / "first.txt"));
  CHECK_THAT(killed.out, Contains("second: 3") && !Contains("first: 0") && Contains("cannot access 'out'"));
  CHECK_THAT(killed.err, Contains("out.importing is being filled by process "));

  fs::remove(waits);
  test::put_file(waits, picture);
  const Outcome again = imported(folder, 3, words);
  INFO(again.out << again.err);
  REQUIRE(again.code == 0);
  CHECK_THAT(again.out, Contains("61 samples") && Contains(" of 13 files existed already, made from the same images"));
  const std::size_t line = again.out.rfind('\n', again.out.find(" of 13 files")) + 1;
  const int kept = std::stoi(again.out.substr(line));
  CHECK((kept >= 6 && kept < 13));
  REQUIRE(imported(folder, 0, {"images", "in", "--size", "9", "--samples-per-shard", "5", "--out", "fresh"}).code == 0);
  CHECK(same_files(folder / "fresh", folder / "out"));
  CHECK_FALSE(fs::exists(folder / "out.importing"));
}

TEST_CASE("damage ends an import with 4 on one rank and on several, or is left out and listed", "[run][data][image]") {
  const test::TempFolder folder;
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 9; ++i) {
    members.emplace_back(std::to_string(i) + ".png", i == 4 ? "damaged" : test::any_image(2 * i, std::to_string(i)));
    if (i != 7) members.emplace_back(std::to_string(i) + ".cls", std::to_string(i % 2));
  }
  test::put_file(folder / "a.tar", test::tar_file(members));
  for (const int ranks : {0, 2}) {
    const Outcome refused = imported(folder, ranks, {"tar", "a.tar", "--size", "8", "--out", "out"});
    INFO(refused.out << refused.err);
    CHECK(refused.code == 4);
    CHECK_THAT(refused.err, Contains("a.tar: byte ") && Contains("'7.png' has no label '7.cls"));
    CHECK_FALSE(fs::exists(folder / "out"));
  }
  const Outcome skipped =
      imported(folder, 2, {"tar", "a.tar", "--size", "8", "--channels", "1", "--skip-damaged", "--out", "out"});
  INFO(skipped.out << skipped.err);
  REQUIRE(skipped.code == 0);
  CHECK_THAT(skipped.out, Contains("7 samples of (1, 8, 8) u8, 2 classes") &&
                              Contains("2 left out, see out/left_out.txt:") && Contains("'7.png' has no label") &&
                              Contains("a.tar: '4.png' at byte") && Contains("is neither JPEG nor PNG"));
  for (const std::vector<std::string>& bad : std::vector<std::vector<std::string>>{{"--size", "0"},
                                                                                   {"--size", "8x"},
                                                                                   {"--size", "x8"},
                                                                                   {"--size", "8x8x8"},
                                                                                   {"--channels", "2"},
                                                                                   {"--shape", "1,2,3"},
                                                                                   {"--tokens", "words"}}) {
    std::vector<std::string> words = {"tar", "a.tar", "--out", "other"};
    words.insert(words.end(), bad.begin(), bad.end());
    CHECK(imported(folder, 0, words).code == 2);
  }
  CHECK_THAT(imported(folder, 0, {"csv", "a.csv", "--size", "8", "--out", "other"}).err,
             Contains("--size is for images, tar, not for csv"));
}

}  // namespace
}  // namespace echelon
