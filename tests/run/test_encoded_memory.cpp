// SPDX-License-Identifier: Apache-2.0
// The host memory that `check` predicts for rows of JPEG bytes is what a run holds: decoded images, and samples between
// two changes, on each thread of the loader.
#include <catch2/catch.hpp>
#include <regex>

#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/images.hpp"

namespace echelon::test {
namespace {

constexpr const char* kPictures = R"(name = "trial"
[data]
train = "small.h5"
prefetch = 1
[data.hdf5]
samples = "jpegs"
encoded = "rgb"
lengths = "sizes"
labels = "y"
classes = 3
[batch]
global = 4
[train]
epochs = 0
steps = 6
[device]
kind = "onednn"
threads = 1
[[model.layers]]
type = "global_avg_pool"
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 3
)";

void write_pictures(const std::string& path, int height, int width) {
  std::vector<std::string> files;
  std::size_t longest = 0;
  for (int i = 0; i < 8; ++i) {
    files.push_back(jpeg_file(width, height, 3, soft_pixels(width, height, 3, path + std::to_string(i)), 80));
    longest = std::max(longest, files.back().size());
  }
  std::vector<std::uint8_t> rows(files.size() * longest, 0);
  std::vector<std::int32_t> lengths, labels;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::copy(files[i].begin(), files[i].end(), rows.begin() + static_cast<std::ptrdiff_t>(i * longest));
    lengths.push_back(static_cast<std::int32_t>(files[i].size()));
    labels.push_back(static_cast<std::int32_t>(i % 3));
  }
  h5::Writer file(path);
  const auto n = static_cast<std::int64_t>(files.size());
  file.write_all("jpegs", DType::u8, {n, static_cast<std::int64_t>(longest)}, rows.data());
  file.write_all("sizes", DType::i32, {n}, lengths.data());
  file.write_all("y", DType::i32, {n}, labels.data());
  file.publish();
}

// All that `check` predicts for the rank, in MiB: "memory 3.1 MiB a rank: ..; and 5.0 MiB to read its data".
double predicted_mb(const std::string& out) {
  static const std::regex amounts(R"((\nmemory +|; and )([0-9.]+) (KiB|MiB|GiB))");
  double all = 0;
  for (std::sregex_iterator found(out.begin(), out.end(), amounts), end; found != end; ++found)
    all += std::stod((*found)[2]) * ((*found)[3] == "KiB" ? 1.0 / 1024 : (*found)[3] == "GiB" ? 1024 : 1);
  return all;
}

}  // namespace

TEST_CASE("check predicts the memory of decoding large JPEGs to 10 %", "[run][encoded]") {
  const Trial trial(kPictures);
  write_pictures(trial / "small.h5", 16, 12);
  write_pictures(trial / "large.h5", 1203, 904);
  const std::vector<std::pair<std::string, Sets>> ways = {
      {"plain", {}},
      {"threads", {"data.threads=4"}},
      {"changed", {"data.threads=4", "data.augment_flip=true", "data.augment.flip_rows=true"}},
      {"cropped", {"data.threads=4", "data.augment.crop_scale=[0.3, 1]"}},
      {"resized", {"data.threads=4", "data.image_size=[96, 96]", "data.augment.crop_scale=[0.08, 1]"}}};
  for (const auto& [name, own] : ways) {
    double predicted[2] = {}, held[2] = {};
    for (const int large : {0, 1}) {
      const std::string run = name + std::to_string(large);
      const Sets sets = with(own, {"name=" + run, large == 1 ? "data.train=large.h5" : "data.train=small.h5"});
      const Outcome plan = trial.check(sets), trained = trial.train(0, sets);
      INFO(run << "\n" << plan.out << plan.err << trained.out << trained.err);
      REQUIRE((plan.code == 0 && trained.code == 0));
      predicted[large] = predicted_mb(plan.out);
      held[large] = trial.summary(run)["peak_rss_mb"][0];
      if (!trial.summary(run).contains("allocations_per_step")) return;  // a sanitised program keeps freed memory
    }
    const double more = predicted[1] - predicted[0], is = held[1] - held[0];
    INFO(name << ": predicted " << more << " MiB more, held " << is);
    CHECK(std::abs(more - is) <= 0.1 * is + 2);
  }
}

}  // namespace echelon::test
