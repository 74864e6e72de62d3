// SPDX-License-Identifier: Apache-2.0
// Peak memory of a study's cells, which run one after another in one process.
#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/cell_record.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

constexpr const char* kStudy = R"(name = "trial"
[model]
zoo = "cnn_32_64"
[data]
train = "data/train"
[train]
steps = 1
[optimizer]
learning_rate = 0.001
[device]
kind = "onednn"
threads = 1
[study]
ranks = [2]
order = "file"
[study.axes]
"batch.global" = [4096, 32]
)";

// Returns the peaks of all ranks in MiB, for the only cell whose name holds the word.
std::vector<double> peaks(const test::Trial& trial, const std::string& word) {
  std::vector<double> found;
  for (const auto& entry : std::filesystem::directory_iterator(trial / "results/trial")) {
    const std::string folder = entry.path();
    if (!entry.is_directory() || entry.path().filename().string().find(word) == std::string::npos) continue;
    const std::string path = trial / (read_cell(folder).attempt + "/summary.json");
    const auto summary = nlohmann::json::parse(read_file_whole(path));
    for (const double mb : summary["peak_rss_mb"]) found.push_back(mb);
  }
  return found;
}

TEST_CASE("a cell's peak memory is its own, not that of a larger cell before it", "[run][study][resident]") {
  const test::Trial trial(kStudy);
  trial.make_data({"synth", "--samples", "4096", "--shape", "1,28,28", "--shards", "1", "--out", "data/train"});
  const test::Outcome study = trial.echelon({"scale", "trial.toml"}, 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  const std::vector<double> large = peaks(trial, "4096"), small = peaks(trial, "-32_");
  REQUIRE(large.size() == 2);
  REQUIRE(small.size() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    INFO("rank " << rank << ": " << large[rank] << " and " << small[rank] << " MiB");
    CHECK(small[rank] > 10);
    CHECK(small[rank] < large[rank] - 100);
  }
}

}  // namespace
}  // namespace echelon
