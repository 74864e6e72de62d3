// SPDX-License-Identifier: Apache-2.0
// Imports of HDF5 files of other programs as a user runs them: under mpirun, ended by damage or killed, and repeated.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/images.hpp"
#include "tests/support/process.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Outcome;
namespace fs = std::filesystem;

constexpr const char* kWriter = R"(
import h5py, numpy as np, os
rng = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
for part in range(2):                                # a class for every pixel, some of which do not count
    with h5py.File(f"pixels{part}.h5", "w") as f:
        n = 50 + 13 * part
        f.create_dataset("x", data=rng.standard_normal((n, 5, 6, 2)).astype("f4"), chunks=(7, 5, 6, 2), compression=1)
        f["y"] = rng.integers(-1, 3, (n, 5, 6)).astype("i1")
with h5py.File("fields.h5", "w") as f:               # numbers in the shape of a field
    f["x"], f["y"] = rng.standard_normal((81, 3, 4, 5)).astype(">f8"), rng.standard_normal((81, 2, 4, 5))
os.mkdir("files")                                    # one sample a file
for i in range(300):
    with h5py.File(f"files/{i:03}.h5", "w") as f:
        f["x"], f["y"] = rng.integers(0, 999, (4, 3, 5, 2)).astype("i2"), np.int64(i % 3)
)";

constexpr const char* kModel = "[[model.layers]]\ntype = \"flatten\"\n";

// Compares the rows of shards, in any order, with those of the files.
constexpr const char* kComparison = R"(
import h5py, numpy as np, glob, sys
name, out = sys.argv[1:]
rows = lambda x, y: sorted(np.float32(a).tobytes() + np.float32(b).tobytes() for a, b in zip(x, y))
if name == "pixels":
    x, y = (np.concatenate([h5py.File(f"pixels{i}.h5")[k][:] for i in range(2)]) for k in "xy")
    x = x.transpose(0, 3, 1, 2)
elif name == "fields":
    x, y = (h5py.File("fields.h5")[k][:] for k in "xy")
else:
    x, y = (np.stack([h5py.File(f)[k][()] for f in sorted(glob.glob("files/*.h5"))]) for k in "xy")
    x = np.moveaxis(x, 4, 1)
made = [h5py.File(f) for f in sorted(glob.glob(out + "/**/*.h5", recursive=True))]
a, b = (np.concatenate([f[k][:] for f in made]) for k in ("samples", "labels"))
assert a.shape == x.shape and b.shape == y.shape, (a.shape, x.shape, b.shape, y.shape)
assert rows(a, b) == rows(x, y)
assert (a.reshape(len(a), -1) != np.float32(x).reshape(len(a), -1)).any()       # they are mixed
train = np.concatenate([f["samples"][:] for f in made if "/test/" not in f.filename])
axes = (0,) + tuple(range(2, train.ndim))
for f in made:
    assert np.allclose(f.attrs["mean"], train.mean(axes, dtype="f8"), rtol=1e-6, atol=1e-7)
    assert np.allclose(f.attrs["std"], train.std(axes, dtype="f8"), rtol=1e-6)
)";

const std::string kTables[3][2] = {
    {"pixels",
     "train = \"pixels*.h5\"\n[data.hdf5]\nsamples = \"x\"\naxes = \"NHWC\"\nlabels = \"y\"\nlabel_form = \"dense\"\n"
     "classes = 3\n[model]\nignore_label = -1\n"},
    {"fields", "train = \"fields.h5\"\n[data.hdf5]\nsamples = \"x\"\nlabels = \"y\"\nlabel_form = \"values\"\n"},
    {"files", "train = \"files\"\n[data.hdf5]\nsamples = \"x\"\naxes = \"DHWC\"\nlabels = \"y\"\nclasses = 3\n"},
};

Outcome imported(const test::TempFolder& folder, int ranks, const std::string& name,
                 const std::vector<std::string>& more) {
  std::vector<std::string> words = {"data", "import", "hdf5", name + ".toml"};
  words.insert(words.end(), more.begin(), more.end());
  return test::run_echelon(words, {.ranks = ranks, .cwd = folder.path()});
}

void make_files(const test::TempFolder& folder) {
  const Outcome made = test::python({"-c", kWriter}, folder.path());
  INFO(made.err);
  REQUIRE(made.code == 0);
  for (const auto& [name, table] : kTables)
    std::ofstream(folder / (name + ".toml")) << "name = \"import\"\n[data]\n" << table << kModel;
}

std::map<std::string, std::string> tree_of(const std::string& folder) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      tree[entry.path().lexically_relative(folder).string()] = test::file_content(entry.path().string());
  return tree;
}

}  // namespace

TEST_CASE("files of other programs become the same shards on 1, 2 and 3 ranks", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::TempFolder folder;
  make_files(folder);
  for (const auto& [name, table] : kTables) {
    CAPTURE(name);
    for (const int ranks : {0, 2, 3}) {
      const std::string out = name + "-" + std::to_string(ranks);
      const Outcome made = imported(folder, ranks, name,
                                    {"--samples-per-shard", "17", "--hold-out", "9", "--compress", "1", "--out", out});
      INFO(made.out << made.err);
      REQUIRE(made.code == 0);
      CHECK(made.out.find("samples/s as the files lie") == made.out.rfind("samples/s as the files lie"));
      CHECK_THAT(made.out, Contains("samples/s from the shards") && Contains("9 of them held out"));
      if (ranks > 0) CHECK(tree_of(folder / out) == tree_of(folder / (name + "-0")));
    }
    const Outcome compared = test::python({"-c", kComparison, name, name + "-0"}, folder.path());
    INFO(compared.err);
    CHECK(compared.code == 0);
  }
}

TEST_CASE("an import of HDF5 that is killed, or ended by a damaged file, goes on where it was", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::TempFolder folder;
  make_files(folder);
  const std::vector<std::string> options = {"--samples-per-shard", "1", "--out"};
  const auto into = [&](const std::string& out) {
    std::vector<std::string> all = options;
    all.push_back(out);
    return all;
  };
  REQUIRE(imported(folder, 0, "files", into("fresh")).code == 0);

  std::vector<std::string> words = {"data", "import", "hdf5", "files.toml", "--samples-per-shard", "1", "--out", "out"};
  const test::Command launch = test::mpirun(2, words);
  std::string command;
  for (const std::string& word : launch.argv) command += "'" + word + "' ";
  const std::string script = command + R"SH(> first.txt 2>&1 &
pid=$!
for i in $(seq 3000); do [ "$(ls out.importing/made 2>/dev/null | wc -l)" -ge 6 ] && break; sleep 0.01; done
for child in $(pgrep -P $pid); do kill -9 $child; done
wait $pid
echo first: $?
ls out 2>&1
)SH";
  const Outcome killed =
      test::run_process({.argv = {"bash", "-c", script}, .cwd = folder.path(), .env = launch.env, .limit_s = 60});
  INFO(killed.out << killed.err << test::file_content(folder / "first.txt"));
  CHECK_THAT(killed.out, !Contains("first: 0") && Contains("cannot access 'out'"));

  const std::string victim = folder / "files/217.h5", whole = test::file_content(victim);
  std::ofstream(victim, std::ios::binary) << whole.substr(0, whole.size() / 3);
  const Outcome damaged = imported(folder, 2, "files", into("out"));
  INFO(damaged.out << damaged.err);
  CHECK(damaged.code == 4);
  CHECK_THAT(damaged.err, Contains("files/217.h5"));
  const std::size_t kept = tree_of(folder / "out.importing/made").size();
  CHECK(kept >= 6);
  std::ofstream(victim, std::ios::binary) << whole;
  const Outcome again = imported(folder, 3, "files", into("out"));
  INFO(again.out << again.err);
  REQUIRE(again.code == 0);
  CHECK_THAT(again.out, Contains(std::to_string(kept) + " of 300 files existed already, made from the same samples"));
  CHECK(tree_of(folder / "out") == tree_of(folder / "fresh"));
  CHECK_FALSE(fs::exists(folder / "out.importing"));
}

TEST_CASE("an import says which shards it made anew because a file has changed", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::TempFolder folder;
  make_files(folder);
  const std::vector<std::string> options = {"--samples-per-shard", "1", "--keep-order", "--out", "out"};
  const std::string victim = folder / "files/020.h5", whole = test::file_content(victim);
  std::ofstream(victim, std::ios::binary) << whole.substr(0, whole.size() / 3);
  CHECK(imported(folder, 0, "files", options).code == 4);
  REQUIRE(tree_of(folder / "out.importing/made").size() == 20);  // one sample a file: of files 0 to 19
  std::ofstream(victim, std::ios::binary) << whole;
  for (const char* file : {"files/003.h5", "files/011.h5"})
    fs::last_write_time(folder / file, fs::last_write_time(folder / file) + std::chrono::seconds(3));
  const Outcome again = imported(folder, 2, "files", options);
  INFO(again.out << again.err);
  REQUIRE(again.code == 0);
  CHECK_THAT(again.out,
             Contains("18 of 300 files existed already") &&
                 Contains("2 of 300 files existed of an earlier attempt, but the samples or the options have "
                          "changed: made anew"));
}

TEST_CASE("labels that are no classes end an import with file and record", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::TempFolder folder;
  make_files(folder);
  std::ofstream(folder / "two.toml") << "name = \"import\"\n[data]\ntrain = \"files\"\n[data.hdf5]\nsamples = \"x\"\n"
                                        "axes = \"DHWC\"\nlabels = \"y\"\nclasses = 2\n"
                                     << kModel;
  std::ofstream(folder / "counted.toml")
      << "name = \"import\"\n[data]\ntrain = \"pixels*.h5\"\n[data.hdf5]\nsamples = \"x\"\naxes = \"NHWC\"\n"
         "labels = \"y\"\nlabel_form = \"dense\"\nclasses = 3\n"
      << kModel;
  for (const int ranks : {0, 2}) {
    const Outcome one = imported(folder, ranks, "two", {"--out", "out"});
    CHECK(one.code == 4);
    CHECK_THAT(one.err, Contains("files/") && Contains("has label 2, must be 0 to 1"));
    const Outcome dense = imported(folder, ranks, "counted", {"--out", "out"});
    CHECK(dense.code == 4);
    CHECK_THAT(dense.err, Contains("pixels") && Contains("label -1 at (") && Contains("model.ignore_label = -1"));
    CHECK_FALSE(fs::exists(folder / "out"));
    CHECK_FALSE(fs::exists(folder / "out.importing"));
  }
}

}  // namespace echelon
