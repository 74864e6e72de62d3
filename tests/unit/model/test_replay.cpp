// SPDX-License-Identifier: Apache-2.0
// Programs run from recordings must give the bits of programs run op by op.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/recording_device.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

constexpr std::int64_t kBatch = 4;
const TrainerOptions kReplay{.dtype = DType::f32, .replay = true};
const TrainerOptions kPlain{.dtype = DType::f32};

std::vector<NamedGraph> graphs() {
  std::vector<NamedGraph> all = small_sequence_models();
  all.push_back({"cnn_32_64", small_cnn()});
  all.push_back({"dropout", small_dropout_net()});
  all.push_back({"batch norm", small_batch_norm_net()});
  return all;
}

// Takes a step of two micro-batches, the second of which adds; weights then move a little.
std::vector<double> step(Trainer& trainer, std::int64_t number) {
  const PlainBatch batch = hashed_batch(form_of(trainer.graph()), number * 2 * kBatch, 2 * kBatch, 1);
  trainer.set_step(number);
  trainer.gradients(part_of(batch, 0, kBatch), 2 * kBatch, true);
  trainer.gradients(part_of(batch, kBatch, kBatch), 2 * kBatch, false);
  trainer.write_weight(number, 0.01 * static_cast<double>(number));
  return trainer.read_gradients();
}

}  // namespace

TEST_CASE("a program from recordings gives the same bits as one op by op", "[model]") {
  for (const NamedGraph& model : graphs()) {
    INFO(model.name);
    RecordingCounts counts;
    Trainer replayed(model.graph, kBatch, kReplay, make_recording_device(counts));
    Trainer plain(model.graph, kBatch, kPlain);
    for (std::int64_t number = 0; number < 6; ++number) CHECK(step(replayed, number) == step(plain, number));
    CHECK(counts.recorded > 0);
    CHECK(counts.replayed > counts.recorded);
  }
}

TEST_CASE("a scalar that changes is a recording of its own, one that always changes is none", "[model]") {
  const Graph graph = small_cnn();
  RecordingCounts counts;
  Trainer replayed(graph, kBatch, kReplay, make_recording_device(counts)), plain(graph, kBatch, kPlain);
  const auto same_with_scale = [&](std::int64_t number, double scale) {
    replayed.set_loss_scale(scale);
    plain.set_loss_scale(scale);
    CHECK(step(replayed, number) == step(plain, number));
  };
  for (std::int64_t number = 0; number < 12; ++number) same_with_scale(number, number < 6 ? 512 : 256);
  // Forward and backward passes, first and adding; backward passes have two scales.
  CHECK(counts.recorded == 6);
  for (std::int64_t number = 12; number < 40; ++number)
    same_with_scale(number, 1 + 0.125 * static_cast<double>(number));
  CHECK(counts.recorded == 6);
  for (std::int64_t number = 40; number < 44; ++number) same_with_scale(number, 512);
  CHECK(counts.recorded == 8);  // recordings that were unused for long are made again
}

TEST_CASE("recordings are cut where gradients are announced, and hold for any order of announcing or not", "[model]") {
  const Graph graph = small_batch_norm_net();
  RecordingCounts counts;
  Trainer replayed(graph, kBatch, kReplay, make_recording_device(counts)), plain(graph, kBatch, kPlain);
  const PlainBatch batch = hashed_batch(form_of(graph), 0, kBatch, 1);
  plain.gradients(batch, kBatch, true);
  const std::vector<double> wanted = plain.read_gradients();
  for (int pass = 0; pass < 12; ++pass) {
    std::vector<std::int64_t> announced;
    const auto ready = [&](ArenaRange range) {
      announced.push_back(range.begin);
      const std::vector<double> now = replayed.read_gradients();
      for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i)
        REQUIRE(now[i] == wanted[i]);
    };
    if (pass % 3 == 0)
      replayed.gradients(batch, kBatch, true);
    else
      replayed.gradients(batch, kBatch, true, ready);
    CHECK(announced.empty() == (pass % 3 == 0));
    CHECK(replayed.read_gradients() == wanted);
  }
  CHECK(counts.replayed > 0);
}

TEST_CASE("a profile times ops from recordings, each made once", "[model]") {
  RecordingCounts counts;
  const Graph graph = small_cnn();
  const std::unique_ptr<Device> device = make_recording_device(counts);
  Arenas arenas(*device, graph.parameters(), DType::f32);
  Program program(graph, arenas, {.batch = kBatch});
  const std::vector<OpReport> ops = program.profile();
  CHECK(counts.recorded == static_cast<int>(ops.size()));
  CHECK(counts.replayed == 2 * counts.recorded);
  CHECK(std::all_of(ops.begin(), ops.end(), [](const OpReport& op) { return op.seconds > 0; }));
  program.profile();
  CHECK(counts.recorded == static_cast<int>(ops.size()));
  CHECK(counts.replayed == 3 * counts.recorded);
}

TEST_CASE("on a device that records nothing every pass runs op by op", "[model]") {
  Trainer asked(small_cnn(), kBatch, kReplay), plain(small_cnn(), kBatch, kPlain);
  for (std::int64_t number = 0; number < 4; ++number) CHECK(step(asked, number) == step(plain, number));
}
