// SPDX-License-Identifier: Apache-2.0
// The machine of backup workers on random schedules of virtual time: every step takes exactly the gradients that it
// needs, of distinct workers and of that step; all parts of the weights take the same ones; late workers join the open
// step with all its weights; late gradients are counted; a stopped worker delays nobody; all ranks end.
#include <catch2/catch.hpp>

#include "base/hash_rng.hpp"
#include "exchange/backup/buffers.hpp"
#include "tests/support/backup_world.hpp"
#include "tests/support/schedules.hpp"

namespace echelon {
namespace {

using namespace test;

void run_schedule(std::uint64_t seed) { run_backups(draw_backup_schedule(seed)); }

// Returns the mean time of a step, from the first worker's second step to its last.
double step_s(const BackupSchedule& schedule) {
  const std::vector<double> at = run_backups(schedule).verdict_s[0];
  return (at[static_cast<std::size_t>(schedule.steps)] - at[1]) / static_cast<double>(schedule.steps - 1);
}

// Records the decisions.
struct Decisions final : BackupRounds::Owner {
  std::vector<BackupCommand> commands;
  std::vector<std::pair<int, BackupVerdict>> verdicts;
  void decided(const BackupCommand& command) override { commands.push_back(command); }
  void decided(int worker, const BackupVerdict& verdict) override { verdicts.emplace_back(worker, verdict); }
};

}  // namespace

TEST_CASE("the protocol of backup workers on 200 random schedules", "[exchange][protocol][backup]") {
  run_schedules(200, run_schedule);
}
TEST_CASE("the protocol of backup workers on 10,000 random schedules", "[exchange][protocol][backup][.soak]") {
  run_schedules(10'000, run_schedule);
}

TEST_CASE("one of 8 replicas four times slower costs a step at most 15 % of its time", "[exchange][protocol][backup]") {
  BackupSchedule equal = equal_backups(8, 7, 100), slow = equal, synchronous = equal_backups(8, 8, 100);
  slow.slowness[7] = synchronous.slowness[7] = 4;
  CHECK(step_s(slow) < 1.15 * step_s(equal));
  CHECK(step_s(slow) < 1.15 * step_s(equal_backups(8, 8, 100)));
  CHECK(step_s(synchronous) > 3 * step_s(equal));
  const BackupOutcome outcome = run_backups(slow);
  CHECK(outcome.counts[7].dropped > 15);
  CHECK(outcome.counts[7].entered <= 1);  // at most the last step's gradient
}

TEST_CASE("a slow replica that serves delays nobody either", "[exchange][protocol][backup]") {
  BackupSchedule equal = equal_backups(8, 7, 100), slow = equal;
  slow.slowness[0] = 4;
  const auto last_s = [&](const BackupSchedule& schedule) {
    return run_backups(schedule).verdict_s[3][static_cast<std::size_t>(schedule.steps)];
  };
  CHECK(last_s(slow) < 1.15 * last_s(equal));
}

TEST_CASE("a replica that stands still, from any moment on, delays nobody until the meeting",
          "[exchange][protocol][backup]") {
  for (const std::size_t eager_bytes : {std::size_t{0}, std::size_t{1} << 20}) {
    BackupSchedule schedule = equal_backups(8, 7, 40);
    schedule.network.eager_bytes = eager_bytes;
    schedule.sends = 4;
    const double alone_s = step_s(schedule);
    const HashRng random(test_seed(), "moments");
    for (std::uint64_t i = 0; i < 12; ++i) {
      Disturbance& stopped = schedule.disturbance[7];
      stopped.stop_at_s = 200e-6 + 400e-6 * random.uniform(i);
      stopped.stop_for_s = 20e-3;  // longer than a step: steps take 5 ms
      CAPTURE(eager_bytes, stopped.stop_at_s);
      CHECK(step_s(schedule) < 1.15 * alone_s);
    }
  }
}

TEST_CASE("without backup workers all gradients of every step enter", "[exchange][protocol][backup]") {
  BackupSchedule schedule = equal_backups(5, 5, 20);
  schedule.slowness[2] = 4;
  const BackupOutcome outcome = run_backups(schedule);
  for (const std::vector<int>& entered : outcome.entered) CHECK(entered == std::vector<int>{0, 1, 2, 3, 4});
  for (const BackupRounds::Count& worker : outcome.counts) CHECK(worker.dropped == 0);
}

TEST_CASE("messages and bytes of backup workers are those of the formula", "[exchange][protocol][backup]") {
  for (const int needed : {6, 5, 4}) {
    BackupSchedule schedule = equal_backups(6, needed, 30);  // 5 servers, two buckets of 10 values each
    schedule.slowness[5] = 3;
    const BackupOutcome outcome = run_backups(schedule);
    std::uint64_t messages = 4 * 30, bytes = 40 * 4 * 30;  // commands of closed steps, to servers 1 .. 4
    for (std::size_t w = 0; w < 6; ++w) {
      const auto dropped = static_cast<std::uint64_t>(outcome.counts[w].dropped);
      const std::uint64_t taken = static_cast<std::uint64_t>(outcome.counts[w].entered) + dropped;
      const std::uint64_t pieces = 2 * (w < 5 ? 4 : 5);  // pieces on other ranks
      messages += taken * 2 * pieces + (w > 0 ? 2 * taken : 0) + 4 * dropped;
      bytes += taken * 2 * pieces * 80 + (w > 0 ? (32 + 16) * taken : 0) + 40 * 4 * dropped;
    }
    CHECK(outcome.messages == messages);
    CHECK(outcome.bytes == bytes);
  }
}

TEST_CASE("a step is not left without samples by replicas that have none", "[exchange][backup]") {
  Decisions made;
  BackupRounds rounds(4, 2, 5, made);
  rounds.completed(3, {.step = 5, .weight = 0, .whole = 2, .learning_rate = 1});
  rounds.completed(1, {.step = 5, .weight = 0, .whole = 2, .learning_rate = 1});
  CHECK(made.commands.empty());
  rounds.completed(2, {.step = 5, .weight = 1, .whole = 2, .learning_rate = 1});
  REQUIRE(made.commands.size() == 2);
  CHECK(made.commands[0].entered == std::vector<int>{2, 3});
  CHECK(made.commands[0].factor == 2);
  CHECK(made.commands[1].joins == 1);
  CHECK(made.commands[1].step == 6);
  rounds.completed(0, {.step = 5, .weight = 1, .whole = 2, .learning_rate = 1});
  CHECK(made.verdicts.back().first == 0);
  CHECK(made.verdicts.back().second.next_step == 6);
  CHECK(rounds.counts()[0].dropped == 1);
}

TEST_CASE("a replica completes the step that it was led to, once", "[exchange][backup]") {
  Decisions made;
  BackupRounds rounds(3, 2, 0, made);
  rounds.completed(0, {.step = 0, .weight = 1, .whole = 3});
  CHECK_THROWS(rounds.completed(0, {.step = 0, .weight = 1, .whole = 3}));
  CHECK_THROWS(rounds.completed(1, {.step = 1, .weight = 1, .whole = 3}));
}

TEST_CASE("a rank without a part of the weights has no memory of a server", "[exchange][backup]") {
  constexpr std::int64_t kElems = 100;
  const auto device = open_device("reference", {});
  ParameterSet parameters;
  parameters.add("w", Shape{kElems}, {});
  Arenas arenas(*device, parameters, DType::f32);
  Optimiser optimiser({}, arenas);
  Staging gradients(*device, arenas.gradients_at(0), kElems, DType::f32);
  Staging weights(*device, arenas.weights_at(0), kElems, DType::f32);
  const std::size_t before = device->peak_bytes(), whole = kElems * sizeof(float);
  const Parts parts = {{0, kElems}, {kElems, kElems}};
  for (const auto& [rank, held] : {std::pair(1, std::size_t{0}), std::pair(0, 3 * whole)}) {
    BackupBuffers buffers(rank, 2, {{0, kElems}}, {parts}, arenas, optimiser, gradients, weights);
    buffers.begin();
    buffers.store_weights();
    buffers.store_states();
    CHECK(device->peak_bytes() - before == held);
  }
}

}  // namespace echelon
