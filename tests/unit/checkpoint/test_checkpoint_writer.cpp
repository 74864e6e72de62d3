// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written beside training: from a copy, one after another; their errors are reported in time.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "tests/support/process.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

// One whole tensor, and one of two rows that are gathered.
struct State {
  std::vector<double> weights, row;
  std::int64_t step = 0;
  double loss = 0;

  explicit State(std::int64_t at = 0) : weights(test::random_values(17, "weights")), row(5), step(at), loss(0.25) {
    for (double& weight : weights) weight += static_cast<double>(at);
  }
  VisitAll all() {
    return [this](StateVisitor& visitor) {
      visitor.scalar("step", step);
      visitor.tensor({.name = "weights/w", .data = weights.data(), .dtype = DType::f64, .shape = {17}});
      visitor.tensor({.name = "carried/rows",
                      .data = row.data(),
                      .dtype = DType::f64,
                      .shape = {1, 5},
                      .placement = Placement::rows,
                      .global_shape = {2, 5},
                      .offset = {0, 0}});
      visitor.scalar("loss", loss);
    };
  }
};

GatheredTensors rows(std::byte fill = std::byte{3}) {
  return {{"carried/rows", {.shape = {2, 5}, .bytes = std::vector<std::byte>(80, fill)}}};
}

CheckpointConfig config_with(bool asynchronous, std::int64_t keep = 2) {
  CheckpointConfig config;
  config.asynchronous = asynchronous, config.keep = keep;
  return config;
}

}  // namespace

TEST_CASE("the file of a copy is that of the state, byte by byte", "[train][checkpoint]") {
  const test::TempFolder folder;
  State state(3);
  const GatheredTensors gathered = rows();
  const std::string direct = save_checkpoint(folder.path(), 3, with_gathered(state.all(), gathered)).path;
  const std::string file = read_file_whole(direct), manifest = read_file_whole(manifest_path(direct));
  Snapshot copy;
  State other(9);
  copy.expect(state.all());
  copy.allocate();
  copy.take(other.all(), rows(std::byte{1}));
  copy.take(state.all(), rows());  // copies into the memory of the first copy
  state = State(11);
  save_checkpoint(folder.path(), 3, [&](StateVisitor& visitor) { copy.visit_state(visitor); });
  CHECK(read_file_whole(direct) == file);
  CHECK(read_file_whole(manifest_path(direct)) == manifest);
}

TEST_CASE("what is saved is the state at the call, whatever happens to it meanwhile", "[train][checkpoint]") {
  const bool asynchronous = GENERATE(false, true);
  const test::TempFolder folder;
  const CheckpointConfig config = config_with(asynchronous, 3);
  const std::thread::id caller = std::this_thread::get_id();
  int beside = 0;
  CheckpointWriter writer(folder.path(), config, {.before_publish = [&] {
                            beside += std::this_thread::get_id() != caller;
                            std::this_thread::sleep_for(std::chrono::milliseconds(20));
                          }});
  State first(1);
  writer.expect(first.all());
  for (std::int64_t step = 1; step <= 5; ++step) {
    State state(step);
    writer.save(step, state.all(), rows(), 2);
    for (double& weight : state.weights) weight = -1;
    state.step = -1;
  }
  writer.finish();
  CHECK(beside == (asynchronous ? 5 : 0));
  const std::vector<WrittenCheckpoint> written = writer.take_written();
  REQUIRE(written.size() == 5);
  for (std::int64_t step = 1; step <= 5; ++step) {
    const WrittenCheckpoint& one = written[static_cast<std::size_t>(step - 1)];
    CHECK(one.info.step == step);
    CHECK(one.write_s > 0.02);
    CHECK((one.blocked_s > 0 && one.blocked_s <= one.write_s + 0.5));
    const bool kept = step >= 3 || step == 2;
    CHECK(fs::exists(one.info.path) == kept);
    if (!kept) continue;
    CHECK(one.info.bytes == fs::file_size(one.info.path));
    State back(0);
    std::vector<double> both(10);
    load_checkpoint(one.info.path, [&](StateVisitor& visitor) {
      visitor.scalar("step", back.step);
      visitor.tensor({.name = "weights/w", .data = back.weights.data(), .dtype = DType::f64, .shape = {17}});
      visitor.tensor({.name = "carried/rows", .data = both.data(), .dtype = DType::f64, .shape = {2, 5}});
    });
    CHECK(back.step == step);
    CHECK(back.weights == State(step).weights);
    CHECK(std::memcmp(both.data(), rows().at("carried/rows").bytes.data(), 80) == 0);
  }
  CHECK(read_file_whole(folder / "best") == "step-00000002\n");
  CHECK(read_file_whole(folder / "latest") == "step-00000005\n");
  CHECK(writer.take_written().empty());
}

TEST_CASE("the caller waits for the copy alone, and for a write that is under way", "[train][checkpoint]") {
  const test::TempFolder folder;
  const CheckpointConfig config = config_with(true);
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  CheckpointWriter writer(folder.path(), config, {.before_publish = [gone] { gone.wait(); }});
  State state(1);
  writer.save(1, state.all(), rows(), -1);  // returns although its write does not end
  CHECK(writer.take_written().empty());
  CHECK(!find_checkpoint(folder.path()));
  auto second = std::async(std::launch::async, [&] { writer.save(2, state.all(), rows(), -1); });
  CHECK(second.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  go.set_value();
  REQUIRE(second.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  writer.finish();
  const auto written = writer.take_written();
  REQUIRE(written.size() == 2);
  CHECK(written[0].blocked_s > 0.03);
}

TEST_CASE("a write that fails is told at the next call, leaves nothing, and the next one is tried",
          "[train][checkpoint]") {
  const test::TempFolder folder;
  const CheckpointConfig config = config_with(true);
  int writes = 0;
  {
    CheckpointWriter writer(folder.path(), config, {.before_publish = [&] {
                              if (++writes > 1) throw EnvironmentError("No space left on device");
                            }});
    State state(1);
    writer.save(1, state.all(), rows(), -1);
    writer.save(2, state.all(), rows(), -1);
    CHECK_THROWS_AS(writer.finish(), EnvironmentError);
    CHECK_NOTHROW(writer.finish());
    CHECK(writer.take_written().size() == 1);
    writer.save(3, state.all(), rows(), -1);
    CHECK_THROWS_AS(writer.save(4, state.all(), rows(), -1), EnvironmentError);
    writer.save(5, state.all(), rows(), -1);
  }  // the destructor logs the last error
  CHECK(writes == 4);
  CHECK(find_checkpoint(folder.path())->step == 1);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) files += entry.is_regular_file();
  CHECK(files == 3);
}

}  // namespace echelon
