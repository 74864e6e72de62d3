// SPDX-License-Identifier: Apache-2.0
// The refusals of tests/support/bad_configs.cpp as a user sees them: exit code 2, and one line that names the file.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/bad_configs.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {

TEST_CASE("echelon check refuses every bad config with code 2 and says where, why and what instead", "[config]") {
  const TempFolder folder;
  const std::string path = folder / "bad.toml";
  std::vector<BadConfig> all = bad_configs();
  all.insert(all.end(), bad_device_configs().begin(), bad_device_configs().end());
  all.insert(all.end(), bad_exchange_configs().begin(), bad_exchange_configs().end());
  all.insert(all.end(), bad_recipe_configs().begin(), bad_recipe_configs().end());
  all.insert(all.end(), bad_reproducible_configs().begin(), bad_reproducible_configs().end());
  for (const BadConfig& bad : all) {
    INFO(bad.what);
    write_file_whole(path, bad.text);
    std::vector<std::string> words = {"check", path, "--replicas", std::to_string(bad.replicas)};
    for (const std::string& set : bad.sets) words.insert(words.end(), {"--set", set});
    const Outcome outcome = run_echelon(words, {.env = bad.environment, .limit_s = 20});
    CHECK(outcome.code == kExitConfig);
    CHECK_FALSE(outcome.timed_out);
    for (std::string fragment : bad.fragments) {
      if (fragment[0] == '@') fragment = path + ":" + fragment.substr(1);
      INFO("wanted: " << fragment << "\n   got: " << outcome.err);
      CHECK(outcome.err.find(fragment) != std::string::npos);
    }
  }
}

TEST_CASE("the good config's plan is printed where its data is elsewhere, with a warning", "[config]") {
  const TempFolder folder;
  const std::string path = folder / "good.toml";
  write_file_whole(path, good_config());
  const Outcome plan = run_echelon({"check", path, "--replicas", "4", "--hosts", "2"});
  CHECK(plan.code == kExitOk);
  CHECK(plan.out.find("64 = micro-batch 16 x accumulation 1 x 4 replicas") != std::string::npos);
  CHECK(plan.out.find("not on this machine") != std::string::npos);
}

TEST_CASE("the effective config runs again as it is", "[config]") {
  const TempFolder folder;
  write_file_whole(folder / "good.toml", good_config());
  const auto effective = [&](const std::string& path, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"check", path, "--effective"};
    words.insert(words.end(), more.begin(), more.end());
    return run_echelon(words);
  };
  const Outcome first = effective(folder / "good.toml", {"--set", "batch.global=96", "--set", "device.kind=onednn"});
  CHECK(first.code == kExitOk);
  CHECK(first.out.find("global = 96") != std::string::npos);
  write_file_whole(folder / "again.toml", first.out);
  CHECK(effective(folder / "again.toml", {}).out == first.out);
}

TEST_CASE("every key is explained without a config", "[config]") {
  const Outcome keys = run_echelon({"check", "--keys"});
  CHECK(keys.code == kExitOk);
  for (const char* words : {"[optimizer]", "learning_rate", "naive | ring | ", "max_pool", "ECHELON_BATCH_GLOBAL"})
    CHECK(keys.out.find(words) != std::string::npos);
}

TEST_CASE("the experiments in the repository are accepted", "[config]") {
  for (const char* path :
       {"configs/smoke/digits.toml", "configs/smoke/digits_reproducible.toml", "configs/smoke/lenet_fashion.toml",
        "configs/bench/lenet.toml", "configs/scaling/digits_strong.toml", "configs/scaling/digits_weak.toml",
        "configs/scaling/paced_strong.toml"}) {
    const Outcome plan = run_echelon({"check", path, "--replicas", "2"});
    INFO(path << "\n" << plan.err);
    CHECK(plan.code == kExitOk);
  }
}

}  // namespace echelon::test
