// SPDX-License-Identifier: Apache-2.0
// Checkpoints of models whose parts lie on several ranks: one file per part, whole tensors for readers, all or nothing.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "checkpoint/saved_model.hpp"
#include "h5/file.hpp"
#include "tests/unit/checkpoint/split_state.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using test::SplitState;

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

void load_on(const std::string& path, int ranks, std::int64_t step) {
  for (int rank = 0; rank < ranks; ++rank) {
    SplitState state(rank, ranks, step, false);
    load_checkpoint(path, state.all());
    state.require_loaded(step);
  }
}

void damage(const std::string& path, const std::function<void(std::string&)>& how) {
  std::string bytes = read_file_whole(path);
  how(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("parts that ranks write on their own are whole tensors to any other ranks", "[train][checkpoint]") {
  const int ranks = GENERATE(2, 3, 4);
  const bool asynchronous = GENERATE(true, false);
  const test::TempFolder folder;
  const CheckpointConfig config = test::part_config(asynchronous);
  std::atomic<std::uint64_t> told = 0;
  test::with_writers(folder.path(), ranks, config, [&](CheckpointWriter& writer, Engine& engine) {
    SplitState first(engine.rank(), ranks, 1, true);
    writer.expect(first.all());
    for (const std::int64_t step : {1, 2, 3}) {
      SplitState state(engine.rank(), ranks, step, true);
      writer.save(step, state.all(), state.gathered(), 1);
      state.spoil();
    }
    writer.finish();
    const std::vector<WrittenCheckpoint> written = writer.take_written();
    ECHELON_CHECK_EQ(written.size(), writer.leads() ? 3U : 0U);
    for (const WrittenCheckpoint& one : written) told = one.info.bytes;
  });
  REQUIRE(find_checkpoint(folder.path())->step == 3);
  CHECK(damage_of(checkpoint_path(folder.path(), 1)).empty());  // the best one
  const std::string path = checkpoint_path(folder.path(), 3);
  for (const int others : {1, 2, 3, 5}) CHECK_NOTHROW(load_on(path, others, 3));
  std::uint64_t bytes = 0;
  for (const std::string& file : files_of(path)) bytes += fs::file_size(file);
  CHECK(told == bytes);
  std::set<std::string> expected = {"best", "latest"};
  for (const std::string step : {"step-00000001", "step-00000002", "step-00000003"}) {
    expected.insert({step + ".h5", step + ".json"});
    for (int part = 0; part < ranks; ++part) expected.insert(step + ".part-000" + std::to_string(part) + ".h5");
  }
  CHECK(names_in(folder.path()) == expected);
}

TEST_CASE("no rank gets or writes what others hold, and what all hold is written once", "[train][checkpoint]") {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kDense = 150 * 121 * sizeof(double), kShare = kDense / kRanks;
  const test::TempFolder folder;
  std::atomic<std::uint64_t> received = 0;
  test::with_writers(folder.path(), kRanks, test::part_config(true), [&](CheckpointWriter& writer, Engine& engine) {
    SplitState state(engine.rank(), kRanks, 1, true);
    writer.save(1, state.all(), state.gathered(), -1);
    writer.finish();
    if (engine.rank() == 0) received = engine.counters().bytes_received;
  });
  CHECK((received > 100 && received < kShare / 2));
  const std::string path = checkpoint_path(folder.path(), 1);
  CHECK(fs::file_size(path) < kShare);
  int scales = 0, residuals = 0;
  for (int part = 0; part < kRanks; ++part) {
    const h5::Reader reader(part_path(folder.path(), 1, part));
    CHECK(fs::file_size(reader.path()) < 2 * kShare);
    CHECK(reader.info("weights/dense.weight").shape[0] == 150);
    CHECK(reader.info("weights/lstm.weight").shape.rank() == 2);
    CHECK(reader.info("residual/dense.weight").shape[0] == 2);
    CHECK(reader.has("weights/first.bias") == (part == 0));
    CHECK(reader.has("weights/last.bias") == (part == 1));
    CHECK(!reader.has_attribute("training_data"));
    scales += reader.has("weights/norm.scale") ? 1 : 0;
    residuals += reader.has("residual/norm.scale") ? 1 : 0;
  }
  CHECK((scales == 1 && residuals == 1));
  const h5::Reader whole(path);
  CHECK(whole.datasets().size() == test::split_tensors().size());
  CHECK(whole.info("weights/lstm.weight").shape == Shape{40, 7});
  CHECK(whole.attribute_text("training_data") == "{}");
  const auto manifest = nlohmann::json::parse(read_file_whole(manifest_path(path)));
  CHECK((manifest["version"] == 4 && manifest["datasets"].empty() && manifest["parts"].size() == kRanks));
  for (const auto& saved : manifest["parts"][2]["datasets"])
    if (saved["name"] == "weights/lstm.weight") {
      CHECK(saved["shape"] == std::vector<int>{4, 4, 7});
      CHECK(saved["begins"] == std::vector<int>{0, 6, 0});
      CHECK(saved["of"] == std::vector<int>{4, 10, 7});
      CHECK(saved["folded"] == 0);
    }
}

TEST_CASE("a checkpoint with a damaged part is passed over, and the part is named", "[train][checkpoint]") {
  const test::TempFolder folder;
  const int ranks = 2;
  test::save_parts(folder.path(), ranks, {10, 20});
  const std::string main = folder / "step-00000020.h5", part = folder / "step-00000020.part-0001.h5";
  REQUIRE(find_checkpoint(folder.path())->step == 20);
  std::string says = "step-00000020: step-00000020.part-0001.h5: ";
  bool by_size = true;
  SECTION("missing") {
    fs::remove(part);
    says += "the file cannot be read: No such file";
  }
  SECTION("cut off") {
    damage(part, [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
    says += "the file has ";
  }
  SECTION("of another step") {
    fs::copy_file(folder / "step-00000010.part-0001.h5", part, fs::copy_options::overwrite_existing);
    by_size = false;  // parts of two steps have the same size
    says += "'weights/conv.weight', 'weights/dense.weight', 'weights/lstm.weight' and 4 more do not match the checksum";
  }
  SECTION("the other part") {
    fs::copy_file(folder / "step-00000020.part-0000.h5", part, fs::copy_options::overwrite_existing);
  }
  SECTION("a bit anywhere") {
    damage(part, [](std::string& bytes) {
      const auto at = HashRng(test::test_seed(), "bits").below(0, bytes.size());
      bytes[at] = static_cast<char>(bytes[at] ^ 8);
    });
    by_size = false;
  }
  SECTION("a bit of the file of whole tensors") {
    damage(main, [](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; });
    by_size = false;
    says = "step-00000020: the structure of the file does not match the checksum";
  }
  std::vector<DamagedCheckpoint> damaged;
  const auto found = find_checkpoint(folder.path(), &damaged);
  REQUIRE(found);
  CHECK(found->step == 10);
  REQUIRE(damaged.size() == 1);
  CHECK_THAT(damaged[0].text, Catch::StartsWith(says));
  CHECK(glance_at_newest(folder.path())->step == (by_size ? 10 : 20));
  CHECK_THROWS_AS(require_good(main), DataError);

  set_damaged_aside(folder.path(), damaged, folder / "aside", *found);
  for (const std::string& name : names_in(folder.path())) CHECK(!name.starts_with("step-00000020"));
  CHECK(fs::exists(folder / "aside/step-00000020.part-0000.h5"));
  test::save_parts(folder.path(), 3, {20});
  CHECK_NOTHROW(load_on(main, 1, 20));
}

TEST_CASE("where one rank cannot write its part the checkpoint does not count, and nothing of it is left",
          "[train][checkpoint]") {
  const test::TempFolder folder;
  const int ranks = 3;
  const bool asynchronous = GENERATE(true, false);
  test::save_parts(folder.path(), ranks, {1});
  const std::string in_the_way =
      GENERATE("step-00000002.part-0000.h5", "step-00000002.part-0002.h5", "step-00000002.h5", "step-00000002.json");
  INFO(in_the_way);
  fs::create_directory(folder / in_the_way);
  std::ofstream(folder / in_the_way + "/full") << "x";
  std::array<std::string, ranks> errors;
  const CheckpointConfig config = test::part_config(asynchronous);
  test::with_writers(folder.path(), ranks, config, [&](CheckpointWriter& writer, Engine& engine) {
    SplitState state(engine.rank(), ranks, 2, true);
    try {
      writer.save(2, state.all(), state.gathered(), -1);
      writer.finish();
    } catch (const EnvironmentError& error) {
      errors[static_cast<std::size_t>(engine.rank())] = error.what();
    }
    ECHELON_CHECK(writer.take_written().empty());
  });
  const std::size_t who = in_the_way.find("part-0002") == std::string::npos ? 0 : 2;
  for (std::size_t rank = 0; rank < ranks; ++rank) CHECK(errors[rank].empty() == (rank != who));
  CHECK_THAT(errors[who], Catch::Contains(in_the_way));
  CHECK(find_checkpoint(folder.path())->step == 1);
  CHECK(read_file_whole(folder / "latest") == "step-00000001\n");
  fs::remove_all(folder / in_the_way);
  for (const std::string& name : names_in(folder.path())) CHECK(!name.starts_with("step-00000002"));
  test::save_parts(folder.path(), ranks, {2});
  CHECK_NOTHROW(load_on(checkpoint_path(folder.path(), 2), 1, 2));
}

TEST_CASE("parts go with their checkpoint, those without a manifest never count", "[train][checkpoint]") {
  const test::TempFolder folder;
  test::save_parts(folder.path(), 2, {1, 2, 3, 4}, 9);
  fs::remove(folder / "step-00000004.json");  // the writer was killed before it wrote the manifest
  std::ofstream(folder / "step-00000003.part-0007.h5") << "of a mesh with more parts, that was killed";
  CHECK(find_checkpoint(folder.path())->step == 3);
  prune_checkpoints(folder.path(), 1, 1);
  CHECK(names_in(folder.path()) == std::set<std::string>{"latest", "step-00000001.h5", "step-00000001.json",
                                                         "step-00000001.part-0000.h5", "step-00000001.part-0001.h5",
                                                         "step-00000003.h5", "step-00000003.json",
                                                         "step-00000003.part-0000.h5", "step-00000003.part-0001.h5"});
  // The same step is saved again: by one rank, then by three.
  SplitState whole(0, 1, 3, true);
  save_checkpoint(folder.path(), 3, with_gathered(whole.all(), whole.gathered()));
  prune_checkpoints(folder.path(), 1);
  CHECK(names_in(folder.path()) == std::set<std::string>{"latest", "step-00000003.h5", "step-00000003.json"});
  CHECK_NOTHROW(load_on(folder / "step-00000003.h5", 2, 3));
  test::save_parts(folder.path(), 3, {3}, 1);
  CHECK_NOTHROW(load_on(folder / "step-00000003.h5", 2, 3));
  CHECK(names_in(folder.path()).size() == 6);
}

TEST_CASE("parts take the place of a checkpoint of their step, which is good until then", "[train][checkpoint]") {
  const test::TempFolder folder;
  test::save_parts(folder.path(), 2, {4});
  const std::string path = folder / "step-00000004.h5";
  std::set<std::string> usual = names_in(folder.path()), others;
  for (const std::string& name : usual)
    others.insert(is_part(name) ? name.substr(0, name.size() - 3) + ".again.h5" : name);
  for (const std::set<std::string>& names : {others, usual}) {
    std::atomic<int> good = 0;
    test::run_ranks(2, [&](std::unique_ptr<Transport> transport) {
      Engine engine(std::move(transport));
      SplitState state(engine.rank(), 2, 4, true);
      const CheckpointConfig config = test::part_config(false);
      const SaveOptions options{.training_data = "{}", .before_publish = [&] { good += damage_of(path).empty(); }};
      CheckpointWriter writer(folder.path(), config, options, PartRanks(engine, 3));
      writer.save(4, state.all(), state.gathered(), -1);
      writer.finish();
    });
    CHECK(good == 1);
    CHECK(names_in(folder.path()) == names);
    CHECK_NOTHROW(load_on(path, 3, 4));
  }
}

TEST_CASE("parts that are removed while they are read are an error, not zeros", "[train][checkpoint]") {
  const test::TempFolder folder;
  test::save_parts(folder.path(), 2, {1});
  const h5::Reader reader(checkpoint_path(folder.path(), 1));
  std::vector<double> values(150 * 121);
  CHECK_NOTHROW(reader.read_all("weights/dense.weight", values.data(), DType::f64));
  CHECK(reader.info("weights/first.bias").shape == Shape{7});  // the file is open, but its values are not read yet
  fs::remove(part_path(folder.path(), 1, 0));
  CHECK_THROWS_AS(reader.read_all("weights/first.bias", values.data(), DType::f64), DataError);
  CHECK_THROWS_WITH(reader.read_all("weights/norm.scale", values.data(), DType::f64),
                    Catch::Contains("part-0000.h5") && Catch::Contains("missing"));
}

TEST_CASE("the file of a part is no checkpoint", "[train][checkpoint]") {
  const test::TempFolder folder;
  fs::create_directory(folder / "checkpoints");
  test::save_parts(folder / "checkpoints", 2, {1});
  CHECK_THROWS_WITH(find_saved(folder / "checkpoints/step-00000001.part-0001.h5"), Catch::Contains("step-00000001.h5"));
  CHECK_THROWS_AS(find_saved(folder / "checkpoints/step-00000001.part-0001.h5"), ConfigError);
}

}  // namespace echelon
