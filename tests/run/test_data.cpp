// SPDX-License-Identifier: Apache-2.0
// The data verbs as a user runs them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/process.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Outcome;

Outcome run_data_verb(std::vector<std::string> args) {
  args.insert(args.begin(), "data");
  return test::run_echelon(args);
}

}  // namespace

TEST_CASE("the shipped digits are described and shared out", "[run][data]") {
  const Outcome outcome = run_data_verb({"inspect", "data/digits/train", "--replicas", "4", "--batch", "60"});
  REQUIRE(outcome.code == 0);
  REQUIRE_THAT(outcome.out, Contains("1,500 samples of (1, 8, 8), 10 classes, u8; in 8 files"));
  REQUIRE_THAT(outcome.out, Contains("4 replicas, sharding file (auto), global batch 60: 25 steps an epoch"));
  REQUIRE_THAT(outcome.out, Contains("in an epoch: 1,500 samples once, 0 more often, 0 never"));
  REQUIRE(run_data_verb({"inspect", "data/digits/test"}).code == 0);
}

TEST_CASE("a table is imported and inspected; bad ones leave nothing", "[run][data]") {
  const test::TempFolder folder;
  std::ofstream good(folder / "good.csv"), bad(folder / "bad.csv");
  for (int i = 0; i < 40; ++i) good << i << ",7," << i % 2 << "\n";
  bad << "1,2,0\n1,two,0\n";
  good.close();
  bad.close();
  const auto import = [&](const std::string& file, const std::string& out) {
    return run_data_verb({"import", "csv", folder / file, "--shape", "1,1,2", "--shards", "3", "--out", folder / out});
  };
  const Outcome made = import("good.csv", "made");
  REQUIRE(made.code == 0);
  REQUIRE_THAT(made.out, Contains("40 samples of (1, 1, 2) u8, 2 classes, in 3 files"));
  REQUIRE_THAT(run_data_verb({"inspect", folder / "made"}).out, Contains("40 samples"));
  REQUIRE(import("good.csv", "made").code == 2);  // existing data is never overwritten

  const Outcome refused = import("bad.csv", "bad");
  REQUIRE(refused.code == 4);
  REQUIRE_THAT(refused.err, Contains("bad.csv: line 2, column 2: 'two' is not a finite number"));
  REQUIRE(import("none.csv", "bad").code == 4);
  REQUIRE_FALSE(std::filesystem::exists(folder / "bad"));
}

TEST_CASE("synthetic data take any shape; missing folders are named", "[run][data]") {
  const test::TempFolder folder;
  REQUIRE(run_data_verb({"synth", "--out", folder / "synth", "--samples", "300", "--shape", "3,5,4", "--classes", "3",
                         "--compress", "3"})
              .code == 0);
  const Outcome seen = run_data_verb({"inspect", folder / "synth", "--replicas", "7", "--sharding", "record"});
  REQUIRE(seen.code == 0);
  REQUIRE_THAT(seen.out, Contains("300 samples of (3, 5, 4), 3 classes, u8; in 4 files"));
  REQUIRE(run_data_verb({"inspect", folder / "nowhere"}).code == 4);
  const Outcome unknown = run_data_verb({"inspect", folder / "synth", "--sharding", "recrod"});
  REQUIRE(unknown.code == 2);
  REQUIRE_THAT(unknown.err, Contains("did you mean 'record'"));
}

TEST_CASE("options of other formats are refused with the reason, and a heading is reported", "[run][data]") {
  const test::TempFolder folder;
  std::ofstream(folder / "t.csv") << "a,b,class\n1,2,x\n3,4,y\n";
  const auto import = [&](const std::string& format, std::vector<std::string> more) {
    more.insert(more.begin(), {"import", format, folder / "t.csv", "--out", folder / "out"});
    return run_data_verb(std::move(more));
  };
  struct Case {
    const char* format;
    std::vector<std::string> options;
    const char* text;
  };
  for (const Case& bad :
       {Case{"idx", {"--shape", "1,2,3"}, "--shape is for csv, not for idx"},
        Case{"text", {"--stored", "u8"}, "--stored is for csv, images, tar, not for text"},
        Case{"pairs", {"--value-max", "9"}, "--value-max is for csv, idx, not for pairs"},
        Case{"csv", {"--tokens", "words"}, "--tokens is for text, words, sequences, pairs, not for csv"},
        Case{"cifar10", {"--like", "data"}, "not for cifar10: the classes of idx and cifar"},
        Case{"csv", {"--targets", "1", "--label-column", "0"}, "--targets replaces"},
        Case{"csv", {"--stored", "f32", "--value-max", "9"}, "--value-max is for --stored u8"}}) {
    const Outcome outcome = import(bad.format, bad.options);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(bad.text));
  }
  const Outcome made = import("csv", {"--shape", "1,1,2"});
  CHECK(made.code == 0);
  CHECK_THAT(made.out, Contains("line 1 skipped as a heading: a,b,class"));
  CHECK_THAT(run_data_verb({"inspect", folder / "out"}).out, Contains("name") && Contains("y"));
}

TEST_CASE("output that cannot be written is an error", "[run][data]") {
  const auto full = [](const std::string& verb) {
    return test::run_process({.argv = {"sh", "-c", test::echelon_binary() + " " + verb + " > /dev/full"},
                              .cwd = "",
                              .env = {},
                              .limit_s = 30});
  };
  // Less output than a text buffer fails at the end of the verb, more output fails within it.
  for (const char* verb :
       {"data inspect data/digits/train --replicas 4", "check configs/smoke/digits.toml", "check --keys", "info"}) {
    const Outcome outcome = full(verb);
    INFO(verb << ": " << outcome.err);
    CHECK(outcome.code == 3);
    CHECK_THAT(outcome.err, Contains("error: standard output cannot be written"));
  }
}

TEST_CASE("data paths that cannot be followed end with 4 and the reason", "[run][data]") {
  const test::TempFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  std::ofstream(folder / "c.toml") << "[model]\nzoo = \"digits_cnn\"\n[data]\ntrain = \"" << folder / "loop"
                                   << "\"\n";
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"data", "inspect", folder / "loop"},
                                               {"check", folder / "c.toml"},
                                               {"train", folder / "c.toml"}}) {
    const Outcome outcome = test::run_echelon(verb, {.cwd = folder.path()});
    INFO(verb[0] << ": " << outcome.err);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.err, Contains("loop: cannot be read: Too many levels of symbolic links"));
  }
}

TEST_CASE("verifying reads every byte, on one rank and on several, and names what is damaged", "[run][data]") {
  const test::TempFolder folder;
  const auto synth = [&](const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"synth", "--out", folder / out, "--samples", "300", "--shape", "3,8,8", "--shards", "3"});
    return run_data_verb(more);
  };
  REQUIRE_THAT(synth("good", {"--verify"}).out, Contains("verified: ") && Contains("read back"));
  REQUIRE(synth("plain", {"--no-checksums"}).code == 0);
  CHECK_THAT(run_data_verb({"inspect", folder / "good"}).out, Contains("checksums: all"));
  CHECK_THAT(run_data_verb({"inspect", folder / "plain"}).out, Contains("checksums: none"));
  const Outcome good = run_data_verb({"inspect", folder / "good", "--verify"});
  CHECK(good.code == 0);
  CHECK_THAT(good.out, Contains("read by 1 rank") && Contains("0 damaged, 0 without checksums"));
  const Outcome plain = run_data_verb({"inspect", folder / "plain", "--verify"});
  CHECK(plain.code == 0);
  CHECK_THAT(plain.out, Contains("read; no checksums of labels, samples") && Contains("3 without checksums"));

  const std::string bad = folder / "good/shard-0001.h5";
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(bad) / 2);
  std::fstream file(bad, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(middle);
  const int byte = file.get();
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  for (const int ranks : {0, 2}) {
    const Outcome outcome = test::run_echelon({"data", "inspect", folder / "good", "--verify"}, {.ranks = ranks});
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.out, Contains("damaged: 'samples' rows 0 to 99: it does not match its checksum") &&
                                Contains(ranks == 0 ? "read by 1 rank" : "read by 2 ranks") && Contains("1 damaged"));
    CHECK_THAT(outcome.err, Contains("1 of 3 files damaged"));
  }
}

TEST_CASE("verifying calls a file that this program cannot read so, and not damaged", "[run][data]") {
  const test::TempFolder folder;
  REQUIRE(
      run_data_verb({"synth", "--out", folder / "set", "--samples", "300", "--shape", "3,8,8", "--shards", "3"}).code ==
      0);
  const auto change = [&](const char* file, std::streamoff at, int byte) {
    std::fstream(folder / file, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put(static_cast<char>(byte));
  };
  change("set/shard-0001.h5", 8, 9);  // the format of a newer library: version of the superblock
  for (const int ranks : {0, 2}) {
    const Outcome outcome = test::run_echelon({"data", "inspect", folder / "set", "--verify"}, {.ranks = ranks});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 4);
    CHECK_THAT(outcome.out, Contains("cannot be read: ") && Contains("a newer HDF5 library wrote it") &&
                                !Contains("damaged: ") && Contains("0 damaged, 1 cannot be read, 0 without checksums"));
    CHECK_THAT(outcome.err, Contains("1 of 3 files cannot be read"));
  }
  // Beside one that is damaged.
  const auto bytes = static_cast<std::streamoff>(std::filesystem::file_size(folder / "set/shard-0002.h5"));
  for (int i = 0; i < 16; ++i) change("set/shard-0002.h5", bytes / 2 + i, i);
  const Outcome both = run_data_verb({"inspect", folder / "set", "--verify"});
  CHECK(both.code == 4);
  CHECK_THAT(both.out, Contains("cannot be read: ") && Contains("damaged: 'samples' rows ") &&
                           Contains("1 damaged, 1 cannot be read, 0 without checksums"));
  CHECK_THAT(both.err, Contains("1 of 3 files damaged, 1 cannot be read"));
}

TEST_CASE("a run reads shards without checksums with a warning, and ends where a checksum is wrong", "[run][data]") {
  const test::TempFolder folder;
  const auto train = [&](const std::string& set) {
    std::ofstream(folder / "c.toml") << "name = \"" << set << "\"\nseed = 1\n[data]\ntrain = \"" << folder / set
                                     << "\"\n[batch]\nglobal = 20\n[train]\nepochs = 1\n"
                                        "[[model.layers]]\ntype = \"flatten\"\n"
                                        "[[model.layers]]\ntype = \"dense\"\nunits = 10\n";
    return test::run_echelon({"train", folder / "c.toml"}, {.ranks = 2, .cwd = folder.path()});
  };
  for (const char* set : {"plain", "good"})
    REQUIRE(run_data_verb({"synth", "--out", folder / set, "--samples", "200", "--shape", "1,6,6", "--shards", "2",
                           set == std::string("plain") ? "--no-checksums" : "--verify"})
                .code == 0);
  const Outcome plain = train("plain");
  INFO(plain.err);
  CHECK(plain.code == 0);
  const std::string warning = "plain: checksums: none; damage to the values is not detected";
  CHECK(plain.err.find(warning) != std::string::npos);
  CHECK(plain.err.find(warning) == plain.err.rfind(warning));

  const std::string bad = folder / "good/shard-0001.h5";
  std::fstream file(bad, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = content.size() / 2;
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(content[at] ^ 32));
  file.close();
  const Outcome outcome = train("good");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, Contains("good/shard-0001.h5: dataset 'samples' is damaged in the chunk of rows 0 to 99"));
}

}  // namespace echelon
