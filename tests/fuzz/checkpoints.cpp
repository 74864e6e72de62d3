// SPDX-License-Identifier: Apache-2.0
// Reads checkpoints with their manifests, checkpoints that nobody verified, and safetensors files.
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/run_state.hpp"
#include "checkpoint/weights_file.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/state_checksum.hpp"

namespace echelon::fuzz {
namespace {

namespace fs = std::filesystem;

// The state that a small run saves.
class State {
 public:
  explicit State(float begin) {
    std::iota(weights_.begin(), weights_.end(), begin);
    std::iota(moments_.begin(), moments_.end(), 2 * begin);
    if (begin == 0) return;
    run_.step = 7, run_.epoch = 1, run_.global_batch = 32;
    run_.replica_steps = {7, 6};
    run_.open = {{.epoch = 1, .first = 3, .end = 9}};
  }
  VisitAll visit() {
    return [this](StateVisitor& visitor) {
      run_.visit_state(visitor);
      visitor.tensor({.name = "weights/conv1.weight", .data = weights_.data(), .dtype = DType::f32, .shape = {4, 5}});
      visitor.tensor(
          {.name = "optimiser/momentum/conv1.weight", .data = moments_.data(), .dtype = DType::f64, .shape = {20}});
    };
  }

 private:
  RunState run_;
  std::vector<float> weights_ = std::vector<float>(20);
  std::vector<double> moments_ = std::vector<double>(20);
};

constexpr std::int64_t kStep = 7;

// An input is a byte (0: the checkpoint is damaged, 1: its manifest is) and the damaged file.
class CheckpointTarget final : public Target {
 public:
  explicit CheckpointTarget(const Place& place) : folder_(place.folder) {
    State state(1);
    const std::string path = save_checkpoint(folder_, kStep, state.visit()).path;
    files_ = {read_plain(path), read_plain(manifest_path(path))};
    sum_ = test::state_checksum(state.visit());
  }

  std::string draw(Draws& draws) override {
    static const std::vector<std::string> kWords = {"null",       "true",
                                                    "{}",         "[]",
                                                    "\"\"",       "-1",
                                                    "1e30",       "\"checksum64\"",
                                                    "\"offset\"", "\"bytes\"",
                                                    "\"name\"",   ",",
                                                    ":",          "\"version\": 2",
                                                    "[[[[[[[[",   "\"ffffffffffffffffffff\"",
                                                    "\"xyz\""};
    const std::size_t which = draws.below(2);
    return static_cast<char>(which) +
           (which == 0 ? mutate_bytes(files_[0], files_, draws) : mutate_text(files_[1], files_, kWords, draws));
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    const bool manifest = (input[0] & 1) != 0;
    const std::string path = checkpoint_path(folder_, kStep);
    write_plain(path, manifest ? files_[0] : input.substr(1));
    write_plain(manifest_path(path), manifest ? input.substr(1) : files_[1]);
    glance_at_newest(folder_);
    const auto found = find_checkpoint(folder_);
    if (!found) return false;
    State loaded(0);
    load_checkpoint(found->path, loaded.visit());
    if (test::state_checksum(loaded.visit()) != sum_) throw Defect("a damaged checkpoint is loaded as other state");
    return true;
  }

 private:
  std::string folder_;
  std::vector<std::string> files_;  // checkpoint, manifest
  std::uint64_t sum_ = 0;
};

class LoadedTarget final : public Target {
 public:
  explicit LoadedTarget(const Place& place) : path_(place.folder + "/damaged.h5") {
    State state(1);
    file_ = read_plain(save_checkpoint(place.folder, kStep, state.visit()).path);
  }
  std::string draw(Draws& draws) override { return mutate_bytes(file_, {}, draws); }
  bool take(const std::string& input) override {
    write_plain(path_, input);
    State loaded(0);
    return refused_with({kExitData}, [&] { load_checkpoint(path_, loaded.visit()); });
  }

 private:
  std::string path_, file_;
};

std::string safetensors(const nlohmann::ordered_json& header, std::size_t bytes) {
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += text;
  for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(3 * i);
  return file;
}

class WeightsTarget final : public Target {
 public:
  explicit WeightsTarget(const Place& place) : path_(place.folder + "/w.safetensors") {
    const auto tensor = [](const char* dtype, const std::vector<int>& shape, int begin, int end) {
      return nlohmann::ordered_json{{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, end}}};
    };
    header_ = {{"__metadata__", {{"format", "pt"}}},       {"conv1.weight", tensor("F32", {2, 3}, 0, 24)},
               {"conv1.bias", tensor("F16", {4}, 24, 32)}, {"fc.weight", tensor("BF16", {2, 2}, 32, 40)},
               {"fc.bias", tensor("F64", {2}, 40, 56)},    {"n", tensor("I64", {1}, 56, 64)}};
    usual_ = safetensors(header_, 64);
  }

  std::string draw(Draws& draws) override {
    if (draws.chance(0.4)) return mutate_bytes(usual_, {}, draws);
    static const std::vector<std::string> kWords = {
        "null", "[]", "{}",          "\"F32\"", "\"shape\"", "\"data_offsets\"", "[0,0]", "\"dtype\"", "-1", "1e300",
        "2.5",  "[[", "\"\\u0000\"", ",",       "true"};
    std::string text = mutate_text(header_.dump(), {}, kWords, draws);
    std::uint64_t length = text.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file + text + usual_.substr(usual_.size() - 64, draws.chance(0.2) ? draws.below(65) : 64);
  }

  bool take(const std::string& input) override {
    write_plain(path_, input);
    return refused_with({kExitData}, [&] {
      const std::unique_ptr<WeightsFile> file = open_weights(path_);
      for (const StoredTensor& tensor : file->tensors()) {
        if (tensor.shape.elems() > static_cast<std::int64_t>(input.size())) throw Defect("a tensor outside its file");
        std::vector<double> values(static_cast<std::size_t>(tensor.shape.elems()));
        file->read(tensor, values.data(), DType::f64);
      }
    });
  }

 private:
  std::string path_, usual_;
  nlohmann::ordered_json header_;
};

}  // namespace

std::unique_ptr<Target> make_checkpoint(const Place& place) { return std::make_unique<CheckpointTarget>(place); }
std::unique_ptr<Target> make_loaded(const Place& place) { return std::make_unique<LoadedTarget>(place); }
std::unique_ptr<Target> make_weights(const Place& place) { return std::make_unique<WeightsTarget>(place); }

}  // namespace echelon::fuzz
