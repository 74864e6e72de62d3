// SPDX-License-Identifier: Apache-2.0
// Compares whole runs on a device that runs behind the host with the same runs on the host, every loss bit for bit.
// Covers uploads, losses that are waited for later, times by the device's clock, exchanges, evaluations, checkpoints.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "tests/support/attempts.hpp"
#include "tests/support/config_rows.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {
namespace {

struct Row {
  const char* name;
  const char* data;  // a folder that write_row_data fills
  int ranks;
  const char* keys;  // TOML, from [data] on
  const char* layers;
};

constexpr const char* kImages =
    "[[model.layers]]\ntype = \"conv\"\nchannels = 4\nkernel = [3]\npadding = [1]\n"
    "[[model.layers]]\ntype = \"batch_norm\"\n[[model.layers]]\ntype = \"relu\"\n"
    "[[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"dense\"\nunits = 5\n";
constexpr const char* kTexts =
    "[[model.layers]]\ntype = \"embedding\"\nunits = 8\nsparse = true\n[[model.layers]]\ntype = \"lstm\"\n"
    "units = 8\ncarry = true\n[[model.layers]]\ntype = \"lstm\"\nunits = 8\ncarry = true\n"
    "[[model.layers]]\ntype = \"dense\"\nunits = 7\n";
constexpr const char* kSequences =
    "[[model.layers]]\ntype = \"embedding\"\nunits = 8\n[[model.layers]]\ntype = \"lstm\"\nunits = 8\n"
    "[[model.layers]]\ntype = \"sequence_pool\"\nmode = \"last\"\n[[model.layers]]\ntype = \"dense\"\n"
    "units = 3\n";

constexpr Row kRows[] = {
    {"alone", "images", 1, "[batch]\nglobal = 8\naccumulation = 2\n[optimizer]\nclip_norm = 0.5\n", kImages},
    {"layers", "images", 2, "[batch]\nglobal = 8\n[exchange]\nbucket_mb = 0.001\noverlap = \"layers\"\n", kImages},
    {"lars", "images", 2, "[batch]\nglobal = 8\n[optimizer]\nrule = \"lars\"\n[exchange]\nbucket_mb = 0.001\n",
     kImages},
    {"lamb", "images", 1, "[batch]\nglobal = 8\n[optimizer]\nrule = \"lamb\"\n", kImages},
    {"coded", "images", 2, "[batch]\nglobal = 8\n[exchange]\ncodec = \"onebit\"\n", kImages},
    {"stages", "images", 2, "[batch]\nglobal = 8\naccumulation = 4\n[parallel]\npipeline = 2\n", kImages},
    {"stream", "text", 2, "sequence_length = 6\norder = \"stream\"\n[batch]\nglobal = 8\n", kTexts},
    {"buckets", "sequences", 2, "buckets = [4, 8]\n[batch]\nglobal = 8\n", kSequences},
    {"tree", "images", 2,
     "sharding = \"record\"\n[batch]\nglobal = 8\n[train]\nreproducible = true\nmicro_shards = "
     "4\n[exchange]\nalgorithm = \"butterfly\"\n",
     kImages},
};

// Rank 0's records: all losses in order, and where its time went, summed over the steps.
struct Told {
  std::vector<double> losses;
  double forward_s = 0, backward_s = 0, optimiser_s = 0, total_s = 0;
};

Told train(const Row& row, const std::string& folder, bool behind) {
  const std::string results = fmt::format("{}/{}", folder, behind ? "behind" : "host");
  const std::string trains = std::string(row.keys).find("[train]") == std::string::npos ? "[train]\n" : "";
  std::string keys = row.keys;
  const std::string span = "epochs = 1\n";
  if (trains.empty()) keys.insert(keys.find("[train]\n") + 8, span);
  write_file_whole(
      folder + "/config.toml",
      fmt::format("name = \"{0}\"\n[data]\ntrain = \"{1}/{2}/train\"\ntest = \"{1}/{2}/test\"\n{3}{4}[device]\n"
                  "kind = \"reference\"\nthreads = 1\n[run]\nresults = \"{5}\"\nprogress = \"none\"\n"
                  "restart = \"never\"\n{6}",
                  row.name, folder, row.data, keys, trains.empty() ? "" : trains + span, results, row.layers));
  OpenDevice open;
  if (behind) open = [](std::string_view, const DeviceOptions&) { return make_discrete_device(); };
  REQUIRE(train_on_threads(folder + "/config.toml", {}, row.ranks, {}, open) == 0);
  Told told;
  for (const auto& run : std::filesystem::directory_iterator(results + "/" + row.name)) {
    std::istringstream lines(read_file_whole(run.path().string() + "/01/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      for (const char* loss : {"loss", "test_loss"})
        if (record.contains(loss)) told.losses.push_back(record[loss]);
      if (record["type"] != "step") continue;
      told.forward_s += record["time"]["forward"].get<double>();
      told.backward_s += record["time"]["backward"].get<double>();
      told.optimiser_s += record["time"]["optimizer"].get<double>();
      told.total_s += record["time"]["total"].get<double>();
    }
  }
  return told;
}

TEST_CASE("a run on a device behind the host learns what the same run learns on the host", "[contract][equality]") {
  const TempFolder folder;
  write_row_data(folder.path());
  set_log_level(LogLevel::error);
  for (const Row& row : kRows) {
    INFO(row.name);
    const Told host = train(row, folder.path(), false), behind = train(row, folder.path(), true);
    CHECK(host.losses.size() > 3);
    CHECK(behind.losses == host.losses);
    // The device's clock tells where it computes; not all of its time may appear where the host waits.
    CHECK(behind.forward_s > 0);
    CHECK(behind.backward_s > 0);
    CHECK(behind.optimiser_s > 0);
    CHECK(behind.forward_s + behind.backward_s + behind.optimiser_s < 1.5 * behind.total_s);
  }
  set_log_level(LogLevel::info);
}

}  // namespace
}  // namespace echelon::test
