// SPDX-License-Identifier: Apache-2.0
// The experiments of configs/science are accepted with small files of the layout that they name, and ready-made models
// of widths train: replicas and slabs of one have its weights, a run resumes, and memory is as predicted.
#include <filesystem>

#include "tests/run/scenes.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;

template <class T>
void write(h5::Writer& writer, const std::string& name, DType dtype, const Shape& shape, std::int64_t below) {
  const HashRng draws(9, name);
  std::vector<T> values(static_cast<std::size_t>(shape.elems()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(below > 1 ? static_cast<double>(draws.below(i, static_cast<std::uint64_t>(below)))
                                         : 2 * draws.uniform(i) - 1);
  writer.write_all(name, dtype, shape, values.data());
}

std::string config_of(const std::string& name) {
  return (std::filesystem::current_path() / "configs/science" / (name + ".toml")).string();
}

constexpr const char* kVolumes = R"(name = "trial"
seed = 3
[model]
zoo = "unet"
widths = [4, 6]
[data]
train = "train/*.h5"
sharding = "record"
[data.hdf5]
samples = "volume"
axes = "DHW"
labels = "segmentation"
label_form = "dense"
classes = 3
[batch]
global = 4
[train]
epochs = 0
steps = 3
[device]
kind = "reference"
dtype = "f64"
)";

}  // namespace

TEST_CASE("experiments of science are accepted with files of their layouts", "[check][zoo]") {
  const Trial trial(kVolumes);
  for (int i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i) + ".h5";
    h5::Writer cosmo(trial / "cosmo" + number), cam(trial / "cam" + number), scan(trial / "scan" + number),
        volume(trial / "volume" + number);
    write<float>(cosmo, "x", DType::f32, {32, 32, 32, 4}, 9);
    write<float>(cosmo, "y", DType::f32, {4}, 1);
    write<float>(cam, "climate/data", DType::f32, {32, 48, 16}, 1);
    write<std::uint8_t>(cam, "climate/labels_0", DType::u8, {32, 48}, 3);
    write<std::uint8_t>(scan, "images", DType::u8, {3, 32, 48, 3}, 255);
    write<std::uint8_t>(scan, "masks", DType::u8, {3, 32, 48}, 2);
    write<float>(volume, "volume", DType::f32, {16, 8, 24}, 1);
    write<std::uint8_t>(volume, "segmentation", DType::u8, {16, 8, 24}, 4);
    for (h5::Writer* file : {&cosmo, &cam, &scan, &volume}) file->publish();
  }
  h5::Writer statistics(trial / "stats.h5");
  const std::vector<float> least(16, -1), most(16, 1);
  statistics.write_all("climate/minval", DType::f32, {16}, least.data());
  statistics.write_all("climate/maxval", DType::f32, {16}, most.data());
  statistics.publish();
  const auto accepted = [&](const std::string& name, const std::string& files, const Sets& more,
                            const char* parameters) {
    std::vector<std::string> words = {"check", config_of(name),      "--set", "data.train=" + files,
                                      "--set", "data.test=" + files, "--set", "batch.global=2"};
    for (const std::string& set : more) words.insert(words.end(), {"--set", set});
    const Outcome outcome = trial.echelon(words);
    INFO(name << outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Contains(parameters));
  };
  accepted("cosmoflow", "cosmo*.h5", {}, "4,778,788");
  accepted("deepcam", "cam*.h5", {"data.hdf5.statistics=stats.h5"}, "56,454,720");
  accepted("unet_images", "scan*.h5", {}, "7,763,074");
  accepted("unet_volumes", "volume*.h5", {}, "19,071,524");
}

TEST_CASE("unet of volumes: replicas, slabs and a resumed run have the weights of one", "[zoo][equality]") {
  const Trial trial(kVolumes);
  std::filesystem::create_directories(trial / "train");
  for (int i = 0; i < 8; ++i) {
    h5::Writer file(trial / fmt::format("train/{}.h5", i));
    const std::string name = "volume";
    write<float>(file, name, DType::f32, {4, 6, 2}, 1);
    write<std::uint8_t>(file, "segmentation", DType::u8, {4, 6, 2}, 3);
    file.publish();
  }
  const Sets together = {"model.synchronised_batch_norm=true"};
  const std::vector<double> one = weights_of(trial, "one", 0, together);
  for (const int ranks : {2, 4})
    CHECK(distance(weights_of(trial, fmt::format("k{}", ranks), ranks, together), one) <= 1e-9);
  CHECK(distance(weights_of(trial, "slabs", 2, with(together, {"parallel.space=2"})), one) <= 1e-9);
  (void)weights_of(trial, "again", 0, with(together, {"train.steps=1"}));
  CHECK(weights_of(trial, "again", 0, together) == one);
  const Outcome refused = trial.check({"model.widths=[4, 6, 8]"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("multiples of 4") && Contains("(1, 4, 6, 2)") && Contains("nearest valid: 4 or 8"));
  CHECK_THAT(trial.check({"model.dropout=0.5"}).err, Contains("no dropout layer"));
  CHECK_THAT(trial.check({"model.dropout=-0.5"}).err, Contains("nearest valid: 0, or -1"));
  const Outcome unread = trial.check({"model.zoo=resnet20", "model.widths=[3, 3]"});
  CHECK(unread.code == 2);
  CHECK_THAT(unread.err, Contains("model.widths is not used here: it is for model.zoo = \"unet\" or \"cosmoflow\""));
}

}  // namespace echelon::test
