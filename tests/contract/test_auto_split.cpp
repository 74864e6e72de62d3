// SPDX-License-Identifier: Apache-2.0
// Compares parallel.split = "auto" with every choice that it has, each of them run: devices sleep, ranks are threads.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "tests/support/attempts.hpp"
#include "tests/support/config_rows.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {
namespace {

struct Paced {
  const char* name;
  const char* data;    // a folder that write_row_data fills
  const char* batch;   // TOML
  const char* layers;  // TOML
  double gflops;       // chosen so that a step on one rank takes about 40 ms
};

// Returns the seconds of a step on two ranks, from the fastest quarter of the steps; infinite where the split is
// refused. The device sleeps for the modelled times, so other programs on the same cores can only add to them.
double step_s(const Paced& model, const std::string& folder, const std::string& split, const std::string& keys) {
  const std::string config = fmt::format(
      "name = \"{0}\"\n[data]\ntrain = \"{1}/{2}/train\"\nsequence_length = {3}\n{4}\n[parallel]\n{5}\n[train]\n"
      "epochs = 0\nsteps = 9\n[device]\nkind = \"paced\"\nthreads = 1\npaced_gflops = {6}\npaced_gb_per_s = 1000\n"
      "[checkpoint]\nevery_epochs = 0\n[run]\nresults = \"{1}/{7}\"\nprogress = \"none\"\nrestart = \"never\"\n{8}",
      model.name, folder, model.data, model.data == std::string("text") ? 6 : 0, model.batch, keys, model.gflops, split,
      model.layers);
  write_file_whole(folder + "/paced.toml", config);
  if (train_on_threads(folder + "/paced.toml", {}, 2) != 0) return INFINITY;
  for (const auto& run : std::filesystem::directory_iterator(folder + "/" + split + "/" + model.name)) {
    const auto summary = nlohmann::json::parse(read_file_whole(run.path().string() + "/01/summary.json"));
    return summary["step_s"]["p25"];
  }
  return INFINITY;
}

constexpr const char* kConvolutions =
    "[[model.layers]]\ntype = \"conv\"\nchannels = 8\nkernel = [3]\npadding = [1]\n"
    "[[model.layers]]\ntype = \"relu\"\n"
    "[[model.layers]]\ntype = \"conv\"\nchannels = 8\nkernel = [3]\npadding = [1]\n"
    "[[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"dense\"\nunits = 5\n";
constexpr const char* kRecurrent =
    "[[model.layers]]\ntype = \"embedding\"\nunits = 8\n[[model.layers]]\ntype = \"lstm\"\nunits = 8\n"
    "[[model.layers]]\ntype = \"lstm\"\nunits = 8\n[[model.layers]]\ntype = \"dense\"\nunits = 7\n";

TEST_CASE("auto is as fast as the fastest split that could have been given", "[parallel][slow]") {
  const TempFolder folder;
  write_row_data(folder.path());
  set_log_level(LogLevel::error);
  for (const Paced& model : {
           Paced{"replicas", "images", "[batch]\nglobal = 8", kConvolutions, 0.05},
           Paced{"one_image", "images", "sharding = \"record\"\n[batch]\nglobal = 1", kConvolutions, 0.006},
           Paced{"recurrent", "text", "[batch]\nglobal = 8\naccumulation = 4", kRecurrent, 0.006},
       }) {
    double best = INFINITY;
    std::pair<const char*, const char*> fastest;
    std::string all;
    for (const auto& [split, keys] : {std::pair{"data", ""}, std::pair{"pipeline", "pipeline = 2"},
                                      std::pair{"tensor", "tensor = 2"}, std::pair{"space", "space = 2"}}) {
      const double seconds = step_s(model, folder.path(), split, keys);
      all += fmt::format("{} {:.1f} ms, ", split, 1e3 * seconds);
      if (seconds < best) best = seconds, fastest = {split, keys};
    }
    const auto time = [&](const char* split, const char* keys) {
      std::filesystem::remove_all(folder / split);
      return step_s(model, folder.path(), split, keys);
    };
    double chosen = time("auto", "split = \"auto\"");
    for (int again = 0; again < 5 && chosen > 1.2 * best; ++again) {  // in turn; the least of each counts
      best = std::min(best, time(fastest.first, fastest.second));
      chosen = std::min(chosen, time("auto", "split = \"auto\""));
    }
    std::printf("%s: %sauto %.1f ms\n", model.name, all.c_str(), 1e3 * chosen);
    CAPTURE(model.name, fastest.first);
    CHECK(std::isfinite(best));
    CHECK(chosen <= 1.2 * best);
  }
  set_log_level(LogLevel::info);
}

}  // namespace
}  // namespace echelon::test
