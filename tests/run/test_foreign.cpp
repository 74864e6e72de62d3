// SPDX-License-Identifier: Apache-2.0
// Runs on HDF5 files of other programs ([data.hdf5]): k replicas equal one, also with weights of samples, and trained
// models are evaluated and used.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;
using test::Trial;
using test::with;

namespace fs = std::filesystem;

constexpr const char* kModel = R"(
[batch]
global = 8
[train]
epochs = 3
[device]
kind = "reference"
dtype = "f64"
[[model.layers]]
type = "dense"
units = 8
[[model.layers]]
type = "tanh"
[[model.layers]]
type = "dense"
units = )";

// An image of 5 x 7 pixels in rows of variable length, and other types that are no numbers.
constexpr const char* kRows = R"(
import h5py, numpy as np, struct, zlib
part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
png = (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 7, 5, 8, 0, 0, 0, 0))
       + part(b"IDAT", zlib.compress(b"\0" * 5 * 8)) + part(b"IEND", b""))
with h5py.File("rows.h5", "w") as f:
    for name, value in {"images": np.frombuffer(png, "u1"), "numbers": np.arange(4, dtype="i4")}.items():
        rows = f.create_dataset(name, (3,), dtype=h5py.vlen_dtype(value.dtype))
        for i in range(3): rows[i] = value
    f["opaque"] = np.array([np.void(b"123456")] * 3)
    f["y"] = np.arange(3, dtype="i1")
    f["there"] = np.array([f["y"].ref] * 3, dtype=h5py.ref_dtype)
)";

constexpr const char* kEvents = R"(
name = "trial"
[data]
train = "files/hep.h5"
test = "files/hep.h5"
[data.hdf5]
samples = "all_events/hist"
axes = "NHW"
labels = "all_events/y"
classes = 2
weights = "all_events/weight"
rows = [0, 32]
test_rows = [32, 37]
[[model.layers]]
type = "flatten"
)";

constexpr const char* kUniverses = R"(
name = "trial"
[data]
train = "files/cosmo"
test = "files/cosmo"
[data.hdf5]
samples = "x"
axes = "HWC"
labels = "y"
transform = "log1p"
mean = 9
[[model.layers]]
type = "flatten"
)";

constexpr const char* kClimate = R"(
name = "trial"
[data]
train = "files/climate.nc"
test = "files/climate.nc"
sharding = "record"
[data.hdf5]
samples = ["air", "sea"]
axes = "NHW"
labels = "next"
missing = "mean"
mean = [280, 0]
std = [10, 1]
[[model.layers]]
type = "flatten"
)";

constexpr const char* kSteps = R"(
name = "trial"
[data]
train = "files/radioml.hdf5"
test = "files/radioml.hdf5"
[data.hdf5]
samples = "X"
axes = "NTF"
labels = "Y"
label_form = "one_hot"
[[model.layers]]
type = "lstm"
units = 5
[[model.layers]]
type = "sequence_pool"
mode = "last"
)";

constexpr const char* kFields = R"(
name = "trial"
[data]
train = "files/large.h5"
test = "files/large.h5"
buffer_mb = 1
[data.hdf5]
samples = ["fields/a", "fields/b"]
axes = "NCHW"
labels = "labels"
mean = 0.5
[[model.layers]]
type = "flatten"
)";

void check_distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::fabs(a[i] - b[i]) < 1e-9);
}

void make_files(const Trial& trial) {
  fs::create_directories(trial / "files");
  REQUIRE(test::python({fs::absolute("tests/support/foreign_files.py"), trial / "files"}).code == 0);
}

}  // namespace

TEST_CASE("k replicas on files of other programs end with the weights of one", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const auto [data, units] = GENERATE(table<const char*, const char*>(
      {{kEvents, "2"}, {kUniverses, "4"}, {kClimate, "1"}, {kSteps, "24"}, {kFields, "2"}}));
  const Trial trial(std::string(data) + kModel + units + "\n");
  make_files(trial);
  const test::Sets sets = {"data.sharding=record", "checkpoint.every_steps=2"};
  const Outcome alone = trial.train(0, sets);
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  const std::vector<double> one = test::last_values(trial, "weights");
  const double loss = trial.summary()["test_loss"];
  const Outcome together = trial.train(4, with(sets, {"run.restart=never", "train.steps=5"}));
  INFO(together.err);
  REQUIRE(together.code == 0);
  const Outcome resumed = trial.train(2, sets);
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  check_distance(test::last_values(trial, "weights"), one);
  CHECK(std::fabs(trial.summary()["test_loss"].get<double>() - loss) < 1e-9);
  const Outcome judged = trial.echelon({"eval", "results/trial"});
  INFO(judged.err);
  CHECK(judged.code == 0);
  CHECK(trial.echelon({"predict", "results/trial", "--out", "predictions.h5"}).code == 0);
  CHECK(h5::Reader(trial / "predictions.h5").datasets().front().shape[0] > 0);
}

TEST_CASE("inspect says what is in any HDF5 file, and its table trains", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const Trial trial(std::string(kEvents) + kModel + "2\n");
  make_files(trial);
  const Outcome seen = trial.echelon({"data", "inspect", "files/galaxy.h5"});
  INFO(seen.out << seen.err);
  CHECK(seen.code == 0);
  CHECK_THAT(seen.out, Contains("not a shard of echelon") && Contains("(37, 6, 5, 3)") && Contains("classes = 10"));
  const std::string table = seen.out.substr(seen.out.find("[data.hdf5]"));
  std::ofstream(trial / "trial.toml") << "name = \"trial\"\n[data]\ntrain = \"files/galaxy.h5\"\n"
                                      << table << "[[model.layers]]\ntype = \"flatten\"\n"
                                      << kModel << "10\n";
  const Outcome trained = trial.train(2);
  INFO(trained.out << trained.err);
  CHECK(trained.code == 0);
}

TEST_CASE("inspect says what rows of bytes are, and a config that reads them as numbers gets the cure",
          "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const Trial trial(std::string("name = \"trial\"\n[data]\ntrain = \"rows.h5\"\n[data.hdf5]\nsamples = \"images\"\n"
                                "axes = \"NF\"\nlabels = \"y\"\nclasses = 3\n[[model.layers]]\ntype = \"flatten\"\n") +
                    kModel + "3\n");
  const Outcome made = test::python({"-c", kRows}, trial / "");
  INFO(made.err);
  REQUIRE(made.code == 0);
  const Outcome seen = trial.echelon({"data", "inspect", "rows.h5"});
  INFO(seen.out << seen.err);
  CHECK(seen.code == 0);
  CHECK_THAT(seen.out, Contains("rows of bytes of variable length") && Contains("an image of 5 x 7 (height x width)") &&
                           Contains("rows of 6 bytes") && Contains("references to other objects") &&
                           Contains("rows of variable length, each value a 32-bit") && Contains("encoded = \"grey\"") &&
                           !Contains("not a number"));
  const Outcome checked = trial.check();
  CHECK(checked.code == 4);
  CHECK_THAT(checked.err, Contains("'images' holds rows of bytes, not numbers; data.hdf5.encoded"));
}

TEST_CASE("files of other programs become shards that train alike", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const Trial trial(std::string(kUniverses) + kModel + "4\n");
  make_files(trial);
  REQUIRE(trial.train(0, {"data.shuffle=false", "data.test="}).code == 0);
  const std::vector<double> as_they_lie = test::last_values(trial, "weights");
  const Outcome made = trial.echelon({"data", "import", "hdf5", "trial.toml", "--out", "shards", "--keep-order"});
  INFO(made.out << made.err);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.out, Contains("samples/s as the files lie"));
  std::ofstream(trial / "trial.toml") << "name = \"shards\"\n[data]\ntrain = \"shards\"\nshuffle = false\n"
                                      << "[[model.layers]]\ntype = \"flatten\"\n"
                                      << kModel << "4\n";
  const Outcome trained = trial.train(0);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const std::vector<double> from_shards = test::last_values(trial, "weights", "shards");
  check_distance(from_shards, as_they_lie);
}

TEST_CASE("files whose values lie in other files are not staged", "[run][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const Trial trial(std::string(kEvents) + kModel + "2\n");
  make_files(trial);
  constexpr const char* kLinks = R"(
import h5py
with h5py.File("files/hep.h5", "a") as f:
    f.move("all_events", "moved")
    x, layout = f["moved/hist"], h5py.VirtualLayout(f["moved/hist"].shape, "f4")
    layout[:] = h5py.VirtualSource("hist.h5", "hist", x.shape)
    with h5py.File("files/hist.h5", "w") as other: other["hist"] = x[:]
    f.create_virtual_dataset("virtual", layout)
    f["linked"] = h5py.ExternalLink("hist.h5", "hist")
    f.create_dataset("raw", x.shape, "f4", external=[("files/raw.bin", 0, h5py.h5f.UNLIMITED)])[:] = x[:]
)";
  const Outcome made = test::python({"-c", kLinks}, trial / "");
  INFO(made.err);
  REQUIRE(made.code == 0);
  for (const auto& [name, other] :
       {std::pair("virtual", "hist.h5"), {"linked", "hist.h5"}, {"raw", "raw.bin"}, {"moved/hist", ""}}) {
    CAPTURE(name);
    const Outcome run =
        trial.train(2, {std::string("data.hdf5.samples=") + name, "data.hdf5.labels=moved/y",
                        "data.hdf5.weights=moved/weight", "train.steps=1", "data.stage=" + (trial / "stage")});
    INFO(run.err);
    CHECK(run.code == (*other == 0 ? 0 : 4));
    if (*other != 0)
      CHECK_THAT(run.err, Contains("files/hep.h5: values of dataset '" + std::string(name)) && Contains(other) &&
                              Contains("leave data.stage out"));
  }
}

}  // namespace echelon
