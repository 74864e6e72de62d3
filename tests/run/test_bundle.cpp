// SPDX-License-Identifier: Apache-2.0
// The relocatable bundle must run elsewhere with only its own libraries.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"

using namespace echelon::test;
namespace fs = std::filesystem;

namespace {

fs::path build_folder() { return fs::path(echelon_binary()).parent_path().parent_path(); }

// Returns the checkout around the build folder.
fs::path checkout() {
  fs::path folder = build_folder();
  while (!fs::exists(folder / "tests/tools/bundle.sh") && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

// Returns the lines of `ldd` that name a library outside the bundle, under its library path, except glibc and CUDA.
std::string strangers(const std::string& root, const std::string& file) {
  Command ldd{.argv = {"ldd", file}, .cwd = "", .env = {{"LD_LIBRARY_PATH", root + "/lib"}}};
  std::istringstream lines(run_process(ldd).out);
  const std::regex left_out("^\\s*(ld-linux|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil|libcu|libnv).*");
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    const bool inside = line.find("=> " + root + "/lib/") != std::string::npos;
    if (line.find("=>") != std::string::npos && !inside && !std::regex_match(line, left_out)) found += line + "\n";
  }
  return found;
}

// Root may mount where its container permits it.
bool may_mount() {
  const Outcome tried =
      run_process({.argv = {"unshare", "-m", "sh", "-c", "mount --bind /tmp /mnt"}, .cwd = "", .env = {}});
  return tried.code == 0;
}

// Runs `command` with Debian's Open MPI hidden behind empty folders (may_mount).
Command without_open_mpi(const Command& command) {
  Command hidden = command;
  std::string script = "empty=$(mktemp -d) && for f in";
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/openmpi", "/usr/lib/x86_64-linux-gnu/pmix2", "/etc/openmpi", "/usr/share/openmpi"})
    script += std::string(" ") + folder;
  script += "; do [ ! -d \"$f\" ] || mount --bind \"$empty\" \"$f\" || exit 99; done; exec \"$@\"";
  hidden.argv = {"unshare", "-m", "sh", "-c", script, "sh"};
  hidden.argv.insert(hidden.argv.end(), command.argv.begin(), command.argv.end());
  return hidden;
}

}  // namespace

TEST_CASE("the bundle runs where the packages are not", "[bundle][slow]") {
  const TempFolder folder;
  const Outcome packed = run_process({.argv = {"tests/tools/bundle.sh", build_folder().string(), folder / "it.tar.xz"},
                                      .cwd = checkout().string(),
                                      .env = {{"BUNDLE_XZ_LEVEL", "0"}},
                                      .limit_s = 120});
  INFO(packed.out << packed.err);
  REQUIRE(packed.code == 0);
  REQUIRE(
      run_process({.argv = {"tar", "-xJf", folder / "it.tar.xz", "-C", folder.path()}, .cwd = "", .env = {}}).code ==
      0);
  std::string root;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.is_directory()) root = entry.path().string();
  REQUIRE(fs::exists(root + "/bin/echelon"));

  for (const char* place : {"libexec", "lib", "lib/openmpi"})
    for (const auto& entry : fs::directory_iterator(root + "/" + place))
      if (entry.is_regular_file()) CHECK(strangers(root, entry.path().string()) == "");

  Command ranks = mpirun(2, {"train", "configs/smoke/digits.toml", "--set", "train.epochs=2"});
  ranks.argv.front() = root + "/bin/mpirun";
  std::replace(ranks.argv.begin(), ranks.argv.end(), echelon_binary(), root + "/bin/echelon");
  ranks.cwd = root + "/share/echelon";
  for (const bool hidden : {false, true}) {
    fs::remove_all(ranks.cwd + "/results");
    if (hidden && skip_without(may_mount(), Lacks::right, "mounting over a folder needs root")) return;
    const Outcome outcome = run_process(hidden ? without_open_mpi(ranks) : ranks);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains("ranks     2 on 1 host"));
  }
}

TEST_CASE("make install puts a working executable under any prefix", "[install]") {
  const TempFolder folder;
  const Outcome installed = run_process({.argv = {"tests/tools/install.sh", build_folder().string(), folder / "usr"},
                                         .cwd = checkout().string(),
                                         .env = {}});
  INFO(installed.out << installed.err);
  REQUIRE(installed.code == 0);
  const Outcome info = run_process({.argv = {folder / "usr/bin/echelon", "info"}, .cwd = folder.path(), .env = {}});
  CHECK(info.code == 0);
  for (const char* file :
       {"share/echelon/configs/smoke/digits.toml", "share/echelon/slurm/train.sbatch",
        "share/echelon/results/RECORDS.md", "share/doc/echelon/README.md", "share/doc/echelon/LICENSE",
        "share/man/man1/echelon.1.gz", "share/bash-completion/completions/echelon"})
    CHECK(fs::exists(fs::path(folder / "usr") / file));
  // Without tables of lines.
  CHECK(2 * fs::file_size(folder / "usr/bin/echelon") < fs::file_size(build_folder() / "bin/echelon"));
}
