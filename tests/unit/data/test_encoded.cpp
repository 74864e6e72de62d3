// SPDX-License-Identifier: Apache-2.0
// Samples stored as bytes of JPEG files: parts and smaller sizes that are decoded, files in three forms, threads.
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "config/parse.hpp"
#include "data/encoded.hpp"
#include "data/foreign_guess.hpp"
#include "data/import/image.hpp"
#include "data/loader.hpp"
#include "data/sample_plan.hpp"
#include "tests/support/python.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/data/image_sets.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Bytes = std::vector<std::uint8_t>;

std::string picture(int height, int width, int channels, const std::string& name, bool progressive = false) {
  return test::jpeg_file(width, height, channels, test::soft_pixels(width, height, channels, name), 92, progressive);
}

// The whole image as planes of doubles.
std::vector<double> planes(const Image& image) {
  std::vector<double> values(image.pixels.size());
  const std::size_t places = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height),
                    channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < places; ++i)
    for (std::size_t c = 0; c < channels; ++c) values[c * places + i] = image.pixels[i * channels + c];
  return values;
}

double mean_apart(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// Images of several sizes as rows of one width, with their lengths and classes.
struct Rows {
  std::vector<std::string> files;
  std::size_t width = 0;

  void write(const std::string& path) const {
    Bytes all(files.size() * width, 0);
    std::vector<std::int32_t> lengths, labels;
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::copy(files[i].begin(), files[i].end(), all.begin() + static_cast<std::ptrdiff_t>(i * width));
      lengths.push_back(static_cast<std::int32_t>(files[i].size()));
      labels.push_back(static_cast<std::int32_t>(i % 3));
    }
    h5::Writer writer(path);
    const auto n = static_cast<std::int64_t>(files.size());
    writer.write_all("jpegs", DType::u8, {n, static_cast<std::int64_t>(width)}, all.data());
    writer.write_all("sizes", DType::i32, {n}, lengths.data());
    writer.write_all("y", DType::i32, {n}, labels.data());
    writer.publish();
  }
};

Rows some_rows(int count) {
  const HashRng rng(test::test_seed(), "sizes");
  Rows rows;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    rows.files.push_back(picture(40 + static_cast<int>(rng.below(2 * at, 90)),
                                 40 + static_cast<int>(rng.below(2 * at + 1, 90)), 3, std::to_string(i)));
    rows.width = std::max(rows.width, rows.files.back().size() + 7);
  }
  return rows;
}

Dataset opened(const std::string& path, const std::string& keys, const std::string& data = "image_size = [20, 24]\n") {
  const DataConfig config =
      parse_config("[data]\ntrain = \"" + path + "\"\n" + data + "[data.hdf5]\n" + keys, "test.toml").data;
  if (const auto misfit = config.hdf5.misfit()) throw ConfigError(misfit->why);
  return open_dataset(config.train, config);
}

constexpr const char* kRows =
    "samples = \"jpegs\"\nencoded = \"rgb\"\nlengths = \"sizes\"\nlabels = \"y\"\nclasses = 3\n";

// The samples of the first two batches of a loader that changes and mixes them.
std::vector<float> drawn(const Dataset& set, int threads, bool mixes = false) {
  LoaderOptions options{.threads = threads};
  options.augmentation.flip = true;
  options.augmentation.keys.crop_scale = {0.1, 1};
  options.augmentation.keys.brightness = 0.2;
  if (mixes) options.augmentation.keys.mixup = 0.5;
  Loader loader(set, SamplePlan(plan_request(set, DataConfig{}, {5}, 1)), options);
  std::vector<float> all;
  for (int step = 0; step < 2; ++step) {
    const Batch& batch = loader.next();
    const auto* values = static_cast<const float*>(batch.samples);
    all.insert(all.end(), values, values + batch.n * set.form().shape.elems());
  }
  return all;
}

}  // namespace

TEST_CASE("parts of a JPEG are those of the whole image", "[data][encoded]") {
  const bool progressive = GENERATE(false, true);
  const int channels = GENERATE(1, 3);
  const std::string file = picture(133, 171, channels, "part", progressive);
  const Image whole = decode_image(file, channels);
  const HashRng rng(test::test_seed(), "parts");
  for (std::uint64_t i = 0; i < 40; ++i) {
    const ImageWindow window = random_window(rng.at(i), 133, 171, {0.02, 1, 0.3, 3});
    const DecodedPart part = decode_part(file, channels, [&](std::int64_t height, std::int64_t width) -> PartWanted {
      CHECK((height == 133 && width == 171));
      return {.top = window.top, .left = window.left, .height = window.height, .width = window.width};
    });
    REQUIRE(part.shrunk == 8);  // nothing is asked of the size
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    const ImageWindow window = random_window(rng.at(i), 133, 171, {0.02, 1, 0.3, 3});
    const DecodedPart part = decode_part(file, channels, [&](std::int64_t, std::int64_t) -> PartWanted {
      return {window.top,    window.left,  window.height, window.width,
              window.height, window.width, window.height, window.width};
    });
    REQUIRE(part.shrunk == 1);
    REQUIRE((part.top <= window.top && part.left <= window.left));
    REQUIRE(part.top + part.image.height >= window.top + window.height);
    REQUIRE(part.left + part.image.width >= window.left + window.width);
    for (std::int64_t y = window.top; y < window.top + window.height; ++y)
      for (std::int64_t x = window.left * channels; x < (window.left + window.width) * channels; ++x) {
        const auto here = static_cast<std::size_t>((y - part.top) * part.image.width * channels + x -
                                                   part.left * channels),
                   there = static_cast<std::size_t>(y * whole.width * channels + x);
        if (part.image.pixels[here] != whole.pixels[there]) FAIL("pixel " << y << ", " << x << " of window " << i);
      }
  }
}

TEST_CASE("what is seen of a JPEG is the resized whole image, nearly so where it was decoded smaller",
          "[data][encoded]") {
  const std::string file = picture(150, 190, 3, "seen");
  const Image whole = decode_image(file, 3);
  const std::vector<double> image = planes(whole);
  const HashRng rng(test::test_seed(), "windows");
  const PixelScale scale{.factor = {1, 1, 1}, .offset = {0, 0, 0}};
  int smaller = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const ImageWindow window = random_window(rng.at(i), 150, 190, {0.02, 0.3, 0.7, 1.4});
    const Shape shape{3, 24, 28};
    const SeenPart part{.window = window, .full = {.height = 24, .width = 28}};
    std::vector<double> seen(static_cast<std::size_t>(shape.elems())), expected(seen);
    see_encoded(
        file, [&](std::int64_t, std::int64_t) { return part; }, scale, seen.data(), shape, DType::f64);
    resize(image.data(), {3, 150, 190}, window, part.full, expected.data(), shape, DType::f64);
    const bool whole_size = window.height < 48 || window.width < 56;
    smaller += whole_size ? 0 : 1;
    CAPTURE(i, window.height, window.width);
    // The transform's smaller image is an average of pixels, of which the filter takes other ones; soft images differ
    // by little.
    CHECK(mean_apart(seen, expected) < (whole_size ? 1e-10 : 2.5));
  }
  CHECK((smaller > 5 && smaller < 58));
}

TEST_CASE("rows of JPEG bytes: threads do not change what is drawn, mixed or not", "[data][encoded]") {
  const test::Folder folder;
  some_rows(17).write(folder / "rows.h5");
  const Dataset set = opened(folder / "rows.h5", kRows);
  CHECK(set.encoded);
  CHECK(set.samples() == 17);
  CHECK(set.form().shape == Shape{3, 20, 24});
  for (const bool mixes : {false, true}) {
    const std::vector<float> one = drawn(set, 1, mixes);
    CHECK(one == drawn(set, 4, mixes));
    CHECK(*std::max_element(one.begin(), one.end()) <= 1.0F + 1e-6F);
    CHECK(*std::max_element(one.begin(), one.end()) > 0.3F);
  }
}

TEST_CASE("damaged JPEGs and wrong lengths are named by file and record", "[data][encoded]") {
  const test::Folder folder;
  const int threads = GENERATE(1, 3);
  const auto refusal = [&](const Rows& rows, const std::string& keys = kRows) {
    rows.write(folder / "rows.h5");
    return test::refusal<DataError>([&] { (void)drawn(opened(folder / "rows.h5", keys), threads); });
  };
  Rows rows = some_rows(10);
  CHECK_THAT(refusal(rows, "samples = \"y\"\nencoded = \"rgb\"\nlabels = \"y\"\nclasses = 3\n"),
             Contains("dataset 'y' has no rows of bytes"));
  rows.files[6].resize(rows.files[6].size() / 3);
  CHECK_THAT(refusal(rows), Contains("rows.h5: record 6 is damaged or not a JPEG"));
  rows.files[6] = "GIF89a and more";
  CHECK_THAT(refusal(rows), Contains("record 6 is neither JPEG nor PNG: it begins with 0x47494638"));
  rows.files[6].clear();
  CHECK_THAT(refusal(rows), Contains("dataset 'sizes' has 0 for record 6, must be 1 to"));
  rows = some_rows(10);
  rows.write(folder / "rows.h5");
  const Dataset any = opened(folder / "rows.h5", kRows, "");  // the size of the first image is that of all
  CHECK_THAT(test::refusal<DataError>([&] { (void)drawn(any, threads); }),
             Contains("but the first image has") && Contains("data.image_size"));
}

TEST_CASE("keys of encoded images that exclude each other are refused", "[data][encoded]") {
  const auto refusal = [](const std::string& keys) {
    return test::refusal<ConfigError>([&] { (void)opened("none.h5", "samples = \"a\"\n" + keys); });
  };
  CHECK_THAT(refusal("lengths = \"b\"\n"), Contains("data.hdf5.lengths goes with encoded"));
  CHECK_THAT(refusal("encoded = \"rgb\"\naxes = \"NHWC\"\n"), Contains("leave axes out"));
  CHECK_THAT(refusal("encoded = \"grey\"\nchannels = [0]\n"), Contains("leave channels out"));
}

TEST_CASE("images that are imported as they are give the samples of imported pixels", "[data][encoded]") {
  const test::Folder folder;
  for (int i = 0; i < 12; ++i)
    test::put_file(folder / ("in/" + std::string(i % 2 == 0 ? "cat" : "dog") + "/" + std::to_string(i) + ".jpg"),
                   picture(30, 26, 3, std::to_string(i)));
  const auto imported = [&](const std::string& name, bool encoded) {
    const ImageRequest request{.format = "images", .inputs = {folder / "in"}, .encoded = encoded};
    const ImportWritten written = test::import_images(request, {.out = folder / name, .shards = 3}, 2);
    CHECK(written.shards.samples == 12);
    return open_dataset(folder / name);
  };
  const Dataset files = imported("files", true), pixels = imported("pixels", false);
  CHECK((files.encoded && !pixels.encoded));
  CHECK(files.sample_shape == Shape{3, 30, 26});
  CHECK(files.mean == pixels.mean);
  CHECK(files.std == pixels.std);
  CHECK(files.class_names == pixels.class_names);
  CHECK(files.shards[0].checksums);
  const auto whole = [](const Dataset& set) {
    Loader loader(set, SamplePlan(plan_request(set, DataConfig{}, {12}, 1)), {.dtype = DType::f64});
    const auto* values = static_cast<const double*>(loader.next().samples);
    return std::vector<double>(values, values + 12 * set.sample_shape.elems());
  };
  CHECK(mean_apart(whole(files), whole(pixels)) < 1e-12);
}

TEST_CASE("rows of variable length and opaque rows are read as h5py writes them", "[data][encoded]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::Folder folder;
  const Rows rows = some_rows(23);
  rows.write(folder / "rows.h5");
  const test::Outcome made = test::python({"tests/support/encoded_files.py", folder / "rows.h5", folder / ""});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const std::vector<float> expected = drawn(opened(folder / "rows.h5", kRows), 1);
  for (const char* name : {"vlen", "vlen_chunks", "vlen_small", "opaque"}) {
    CAPTURE(name);
    const std::string path = folder / (std::string(name) + ".h5");
    const Dataset set = opened(path, "samples = \"images\"\nencoded = \"rgb\"\nlabels = \"y\"\nclasses = 3\n");
    CHECK(drawn(set, 2) == expected);
    const h5::Reader file(path);
    const ForeignGuess guess = guess_foreign(file, {file.info("y")}, false);
    CHECK_THAT(guess.table, Contains("samples = \"images\"\nencoded = \"rgb\"") && Contains("labels = \"y\"") &&
                                Contains("classes = 3"));
    REQUIRE(!guess.notes.empty());
    CHECK_THAT(guess.notes.back(), Contains("data.image_size"));
  }
  const h5::Reader file(folder / "rows.h5");
  CHECK_THAT(guess_foreign(file, file.datasets(), false).table,
             Contains("lengths = \"sizes\"") && Contains("labels = \"y\""));
}

}  // namespace echelon
