// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: what numpy writes becomes the same shards, and damage is refused with its place.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/import/npy_array.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "h5/file.hpp"
#include "tests/support/python.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::Folder;

std::string npy(const std::string& descr, const std::string& shape, const std::string& values,
                const std::string& order = "False") {
  std::string header = "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + values;
}

std::string npy_file(const Folder& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return folder / name;
}

std::vector<double> shard_values(const std::string& folder, const std::string& dataset) {
  std::vector<double> all;
  for (const Shard& shard : open_dataset(folder).shards) {
    const h5::Reader reader(shard.path);
    std::vector<double> some(static_cast<std::size_t>(reader.info(dataset).shape.elems()));
    reader.read_all(dataset, some.data(), DType::f64);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

ImportRequest npy_request(const std::string& samples, const std::string& labels, const std::string& axes = "") {
  return {.format = "npy", .inputs = {samples, labels}, .axes = axes};
}

std::string npy_refusal(const ImportRequest& request) {
  return test::refusal<DataError>([&] {
    const auto source = open_source(request);
    std::vector<std::uint8_t> samples(1 << 16);
    std::vector<float> labels(1 << 10);
    while (source->read(4, samples.data(), labels.data()) > 0) continue;
  });
}

}  // namespace

TEST_CASE("arrays that numpy writes become shards with the same numbers", "[data][import]") {
  if (test::skip_without(test::has_module("numpy"), test::Lacks::package, "needs numpy")) return;
  const Folder folder;
  const std::string script = R"(
import gzip, numpy as np, sys
r = np.random.default_rng(int(sys.argv[1]))
types = ["?", "u1", "i1", "<u2", ">i4", "<i8", ">f2", "<f4", ">f8"]
for i, t in enumerate(types):
    x = (r.random((7, 3, 4, 2)) * 100).astype(t)       # N H W C
    y = r.integers(0, 3, 7).astype(["u1", "<i8", ">i2"][i % 3])
    np.save(f"x{i}.npy", x); np.save(f"y{i}.npy", y if i % 2 else y[:, None])
    hot = np.eye(3, dtype="f4" if i % 2 else "u1")[y.astype(int)]
    (np.savez if i % 2 else np.savez_compressed)(f"z{i}.npz", x=x, hot=hot)
    with gzip.open(f"g{i}.npy", "wb") as file: np.save(file, np.moveaxis(x, 3, 1))
    np.save(f"t{i}.npy", r.random((7, 2)).astype(">f8"))
    with open(f"all{i}", "w") as file:
        print(*np.moveaxis(x, 3, 1).astype("f4").ravel().tolist(), file=file)
        print(*y.tolist(), file=file)
        print(*np.load(f"t{i}.npy").astype("f4").ravel().tolist(), file=file)
)";
  const test::Outcome made =
      test::python({"-c", script, std::to_string(test::random_integers(1, 0, 1 << 30, "npy")[0])}, folder / "");
  INFO(made.err);
  REQUIRE(made.code == 0);
  for (int i = 0; i < 9; ++i) {
    CAPTURE(i);
    std::ifstream expected(folder / ("all" + std::to_string(i)));
    const auto line = [&] {
      std::string text;
      std::getline(expected, text);
      std::vector<double> values;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
        values.push_back(word == "True" ? 1 : word == "False" ? 0 : std::stod(word));
        at = end + 1;
      }
      return values;
    };
    const std::vector<double> samples = line(), labels = line(), targets = line();
    const auto number = [&](const char* before, const char* behind) {
      return folder / (before + std::to_string(i) + behind);
    };
    const auto write = [&](const std::string& x, const std::string& y, const std::string& axes) {
      const std::string out = folder / "out";
      std::filesystem::remove_all(out);
      write_shards(*open_source(npy_request(x, y, axes)),
                   {.out = out, .unequal = {2, 1}, .chunk = 64, .keep_order = true});
      CHECK(shard_values(out, "samples") == samples);
      CHECK(open_dataset(out).sample_shape == Shape{2, 3, 4});
      CHECK(open_dataset(out).stored == (i < 2 ? DType::u8 : DType::f32));
      return shard_values(out, "labels");
    };
    CHECK(write(number("x", ".npy"), number("y", ".npy"), "NHWC") == labels);
    CHECK(write(number("z", ".npz:x"), number("z", ".npz:hot"), "NHWC") == labels);
    CHECK(write(number("g", ".npy"), number("y", ".npy"), "") == labels);
    CHECK(write(number("g", ".npy"), number("t", ".npy"), "NCHW") == targets);
  }
}

TEST_CASE("arrays of NumPy that cannot be samples or labels are refused with the reason", "[data][import]") {
  const Folder folder;
  const std::string x = npy_file(folder, "x.npy", npy("'|u1'", "(4, 2, 3)", std::string(24, 'a')));
  const std::string y = npy_file(folder, "y.npy", npy("'|i1'", "(4,)", std::string("\0\1\2\1", 4)));
  CHECK(npy_refusal(npy_request(x, y)).empty());
  const auto samples = [&](const std::string& bytes, const std::string& axes = "") {
    return npy_refusal(npy_request(npy_file(folder, "bad.npy", bytes), y, axes));
  };
  CHECK_THAT(samples("\x93NUMPX.."), Contains("bad.npy: is no array of NumPy"));
  CHECK_THAT(samples("\x93NU"), Contains("its magic number (3 of 8 bytes)"));
  CHECK_THAT(samples(npy("'|u1'", "(4, 2, 3)", "abc")), Contains("rows 0 to 3 (3 of 24 bytes)"));
  CHECK_THAT(samples(npy("'|u1'", "(4, 2, 3)", std::string(25, 'a'))), Contains("more bytes than its header tells"));
  CHECK_THAT(samples(npy("'<f4'", "(4, 2, 3)", "", "True")), Contains("Fortran order; np.ascontiguousarray"));
  CHECK_THAT(samples(npy("'<U5'", "(4, 2, 3)", "")), Contains("type '<U5', expected bool, integers"));
  CHECK_THAT(samples(npy("'<c8'", "(4, 2, 3)", "")), Contains("type '<c8'"));
  CHECK_THAT(samples(npy("[('a', '<f4')]", "(4, 2, 3)", "")), Contains("records or texts"));
  CHECK_THAT(samples(npy("'<f4'", "()", "")), Contains("a single number"));
  CHECK_THAT(samples(npy("'<f4'", "(4,)", "")), Contains("samples have 2 to 4 axes"));
  CHECK_THAT(samples(npy("'<f4'", "(4, 0, 3)", "")), Contains("it is empty"));
  CHECK_THAT(samples(npy("'<f4'", "(4, 900000000, 3)", "")), Contains("2.7e+09 values"));
  CHECK_THAT(samples(npy("'<f4'", "(4, 900000000, 900000000)", "")), Contains("claims the shape"));
  CHECK_THAT(samples(npy("'|u1'", "(5, 2, 3)", "")), Contains("has 4 labels for the 5 samples"));
  const std::string good = npy("'|u1'", "(4, 2, 3)", std::string(24, 'a'));
  CHECK_THAT(samples(good, "HWN"), Contains("N comes first; np.moveaxis"));
  CHECK_THAT(samples(good, "NWH"), Contains("np.swapaxes"));
  CHECK_THAT(samples(good, "NH"), Contains("one letter for each axis"));
  CHECK_THAT(samples(good, "NHH"), Contains("each at most once"));
  CHECK_THAT(samples(good, "NHD"), Contains("axes are N, C, H and W"));
  const auto labels = [&](const std::string& bytes) {
    return npy_refusal(npy_request(x, npy_file(folder, "bad.npy", bytes)));
  };
  CHECK_THAT(labels(npy("'|i1'", "(4,)", std::string("\0\1\xff\1", 4))), Contains("label 2: -1 is no class"));
  CHECK_THAT(labels(npy("'|u1'", "(4, 2)", std::string("\1\0\0\1\1\1\0\1", 8))), Contains("label 2: is not one-hot"));
  CHECK_THAT(labels(npy("'|u1'", "(4, 2, 2)", std::string(16, '\0'))), Contains("labels are (N), (N, 1)"));
  CHECK_THAT(test::refusal<ConfigError>([&] { open_source({.format = "npy", .inputs = {x}}); }),
             Contains("takes 2 arrays") && Contains("FILE.npz:NAME"));
}

}  // namespace echelon
