// SPDX-License-Identifier: Apache-2.0
// A run leaves nothing on the machine beside its results, except temporary files of its own.
#include <fmt/format.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "device/cuda_entry.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

// Returns all paths below a folder, relative to it.
std::set<std::string> tree(const std::string& folder) {
  std::set<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    all.insert(entry.path().lexically_relative(folder).string());
  return all;
}

// A working folder with a home and a TMPDIR in it, and a list of what it held at first.
struct Place {
  Place() {
    fs::create_directories(trial / "home");
    fs::create_directories(trial / "tmp");
    std::ofstream(trial / "table.csv") << "1,2,3,0\n4,5,6,1\n7,8,9,0\n";
    before = tree(trial / "");
  }
  // Returns the start of a shell command that sets both.
  std::string env() const {
    return fmt::format("env TMPDIR='{}' HOME='{}' {} ", trial / "tmp", trial / "home", test::echelon_binary());
  }
  // Returns the new paths, except temporary files of the MPI library.
  std::set<std::string> fresh() const {
    std::set<std::string> all;
    for (const std::string& path : tree(trial / ""))
      if (!before.contains(path) && !path.starts_with("tmp/ompi.") && !path.starts_with("tmp/prte.")) all.insert(path);
    return all;
  }

  test::Trial trial;
  std::set<std::string> before;
};

std::string shell_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += "'" + word + "' ";
  return text;
}

TEST_CASE("every verb keeps to its folder, and to the umask", "[run]") {
  const std::string umask = GENERATE(as<std::string>(), "002", "027", "077");
  const auto denied = static_cast<fs::perms>(std::stoi(umask, nullptr, 8));
  const Place place;
  const std::string mpirun = shell_words(test::mpirun(2, {}).argv);
  const std::string script = fmt::format(
      "umask {0}; set -e; {1} train trial.toml --set train.steps=12 --set 'run.trace=steps 3..5'\n"
      "{2} train trial.toml --set name=two --set train.steps=12 --set data.stage=disk\n"
      "{1} train trial.toml --set name=served --set train.steps=6 --local-ranks 3 --set "
      "exchange.strategy=asynchronous\n"
      "{1} data import csv table.csv --shape 1,1,3 --shards 2 --out imported\n"
      "{1} report results --out page\n{1} verify --quick --dir verified --junit verified.xml",
      umask, place.env(),
      fmt::format("TMPDIR='{0}' HOME='{1}' {2}", place.trial / "tmp", place.trial / "home", mpirun));
  const test::Outcome outcome =
      test::run_process({.argv = {"bash", "-c", script}, .cwd = place.trial / "", .env = {}, .limit_s = 240});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  for (const char* made : {"results/trial", "results/two", "results/served", "imported", "verified", "page"})
    CHECK(fs::exists(place.trial / made));
  const std::string stage = fmt::format("disk/echelon-stage-{}", ::geteuid());
  for (const std::string& path : place.fresh()) {
    INFO(path);
    const bool own = path.starts_with("results/") || path.starts_with("imported") || path.starts_with("disk");
    const bool named = path == "results" || path == "verified" || path.starts_with("page") || path == "verified.xml";
    CHECK((own || named));
    const fs::file_status status = fs::status(place.trial / path);
    const fs::perms full = fs::is_directory(status) ? fs::perms(0777) : fs::perms(0666);
    const fs::perms wanted = path == stage ? fs::perms(0700) : full & ~denied;
    CHECK(static_cast<unsigned>(status.permissions() & fs::perms::all) == static_cast<unsigned>(wanted));
  }
  CHECK(tree(place.trial / "tmp").empty());
}

TEST_CASE("a job whose every process is killed leaves no memory behind, nor files outside of its run", "[run]") {
  const std::string split = GENERATE(as<std::string>(), "parallel.tensor=1", "parallel.tensor=2");
  const Place place;
  const std::string command =
      fmt::format("TMPDIR='{}' HOME='{}' {}", place.trial / "tmp", place.trial / "home",
                  shell_words(place.trial.words(2, {"train.epochs=3000", "checkpoint.every_steps=20", split})));
  const test::Outcome outcome = place.trial.in_background(command,
                                                          "running; reached 20; for p in $(pgrep -P $pid); do grep -oE "
                                                          "'/dev/shm/.*' /proc/$p/maps; done | sort -u > mapped\n"
                                                          "kill -9 $(pgrep -P $pid) $pid; wait $pid; echo left: $(ls "
                                                          "/dev/shm/ | grep -xFf <(sed 's|.*/||; s| .*||' mapped))");
  INFO(outcome.out << outcome.err);
  REQUIRE(!outcome.timed_out);
  const std::string mapped = read_file_whole(place.trial / "mapped");
  INFO(mapped);
  CHECK_THAT(outcome.out, Contains("left:\n"));
  for (const std::string& path : place.fresh()) {
    INFO(path);
    CHECK((path == "results" || path == "mapped" || path == "results/trial" || path.starts_with("results/trial/")));
  }
  for (const std::string& path : tree(place.trial / "tmp")) {
    INFO(path);
    if (path.find('/') == std::string::npos)
      CHECK((fs::status(place.trial / ("tmp/" + path)).permissions() & fs::perms(077)) == fs::perms::none);
  }
}

TEST_CASE("a run does not leave the folder of results, by its name or by a link", "[run]") {
  const test::Trial trial;
  for (const char* name : {"../out", "/out", "a/b", "..", "."}) {
    const test::Outcome outcome = trial.train(0, {fmt::format("name={}", name), "train.steps=2"});
    INFO(name << outcome.out << outcome.err);
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Contains("name"));
  }
  fs::create_directories(trial / "elsewhere");
  fs::create_directories(trial / "results");
  fs::create_directory_symlink("../elsewhere", trial / "results/trial");
  const test::Outcome outcome = trial.train(0, {"train.steps=2"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitEnvironment);
  CHECK_THAT(outcome.err, Contains("results/trial") && Contains("elsewhere") && Contains("remove the link"));
  CHECK(trial.check({"train.steps=2"}).code == kExitEnvironment);
  CHECK(fs::is_empty(trial / "elsewhere"));
  // The folder of results may be a link, because the user decides where results go.
  fs::create_directories(trial / "large");
  fs::create_directory_symlink("large", trial / "linked");
  CHECK(trial.train(0, {"train.steps=2", "run.results=linked"}).code == kExitOk);
  CHECK(fs::exists(trial / "large/trial"));
}

TEST_CASE("the CUDA library is not taken from where anybody may have put one", "[run][cuda]") {
  const test::Trial trial;
  std::ofstream(trial / "planted.c") << "#include <stdio.h>\n#include <stdlib.h>\n"
                                        "__attribute__((constructor)) static void loaded(void) {\n"
                                        "  fclose(fopen(getenv(\"PLANTED\"), \"w\"));\n}\n";
  fs::create_directories(trial / "bin");
  const std::string library = trial / kCudaLibrary;
  const bool compiled =
      test::run_process({.argv = {"gcc", "-shared", "-fPIC", "-o", library, trial / "planted.c"}, .cwd = {}, .env = {}})
          .code == 0;
  if (test::skip_without(compiled, test::Lacks::package, "needs gcc")) return;
  // This executable has no library beside it, whatever was built.
  fs::copy_file(test::echelon_binary(), trial / "bin/echelon");
  const std::string marker = trial / "loaded";
  const auto try_it = [&] {
    return test::run_process(
        {.argv = {trial / "bin/echelon", "train", "trial.toml", "--set", "device.kind=cuda"},
         .cwd = trial / "",
         .env = {{"PLANTED", marker}, {"LD_LIBRARY_PATH", (trial / "") + ":."}, {"ECHELON_CUDA_LIBRARY", library}}});
  };
  const test::Outcome outcome = try_it();
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitEnvironment);
  CHECK_THAT(outcome.err, Contains("is not beside the executable"));
  CHECK(!fs::exists(marker));
  fs::rename(library, trial / "bin/libechelon_cuda.so");
  CHECK(try_it().code == kExitEnvironment);
  CHECK(fs::exists(marker));  // so the library would have been seen
}

}  // namespace
}  // namespace echelon
