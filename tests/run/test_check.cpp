// `echelon check` on data that is there: the plan's numbers against ones worked out by hand.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/data/shards.hpp"

namespace echelon::test {
namespace {

// 100 samples of (1, 28, 28) in 4 files, and an experiment on them.
struct Setup {
  TempFolder folder;
  std::string config = folder / "lenet.toml";

  Setup() {
    make_folders(folder / "data");
    ShardSpec spec;
    spec.sample = Shape{1, 28, 28};
    write_shards(folder / "data", {40, 30, 20, 10}, spec);
    write_file_whole(config, fmt::format("[model]\nzoo = \"lenet\"\n[data]\ntrain = \"{}\"\n[batch]\nglobal = 16\n"
                                         "accumulation = 2\n[train]\nepochs = 3\n[device]\nkind = \"reference\"\n"
                                         "[exchange]\nbucket_mb = 100\n",
                                         folder / "data"));
  }

  Outcome check(const std::vector<std::string>& more) const {
    std::vector<std::string> argv = {echelon_binary(), "check", config};
    argv.insert(argv.end(), more.begin(), more.end());
    return run_process({.argv = argv, .cwd = "", .env = {}, .limit_s = 60});
  }
};

void says(const Outcome& outcome, const std::vector<std::string>& fragments) {
  for (const std::string& fragment : fragments) {
    INFO("wanted: " << fragment << "\n   got: " << outcome.out << outcome.err);
    CHECK((outcome.out + outcome.err).find(fragment) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("the plan counts shards, batch, steps, parameters, memory and bytes on the wire", "[config]") {
  const Setup setup;
  const Outcome plan = setup.check({"--replicas", "4", "--hosts", "2"});
  CHECK(plan.code == kExitOk);
  // LeNet: 320 + 18,496 + 401,536 + 1,290 parameters; ring: 2 (k - 1) gradients of 4 bytes.
  const double gradients = 4.0 * 421642;
  says(plan, {"100 samples of (1, 28, 28), 10 classes, u8 in 4 files", "4 on 2 hosts (at most 2 a host)",
              "16 = micro-batch 2 x accumulation 2 x 4 replicas", "by file (auto), 4 files for 4 replicas",
              "replica 0: 40 samples: a0.h5", "10 an epoch, 30 in all", "421,642 parameters",
              fmt::format("weights {:.2f} MiB, gradients {:.2f} MiB, optimiser {:.2f} MiB", gradients / 1048576,
                          gradients / 1048576, gradients / 1048576),
              fmt::format("ring all-reduce in 1 bucket: {:.2f} MiB a step over all ranks", 6 * gradients / 1048576),
              "conv1", "warning: no data.test"});
}

TEST_CASE("one replica exchanges nothing; many small buckets cost the same bytes", "[config]") {
  const Setup setup;
  says(setup.check({}), {"none: one replica", "7 an epoch"});
  says(setup.check({"--replicas", "2", "--set", "exchange.bucket_mb=0.05"}), {"3.22 MiB a step over all ranks"});
}

TEST_CASE("what the data cannot satisfy is refused with the numbers", "[config]") {
  const Setup setup;
  const Outcome many = setup.check({"--replicas", "101", "--set", "batch.global=202"});
  CHECK(many.code == kExitConfig);
  says(many, {"101 replicas for 100 samples"});
  const Outcome hosts = setup.check({"--replicas", "2", "--hosts", "3"});
  CHECK(hosts.code == kExitConfig);
  says(hosts, {"--hosts 3: 1 to 2"});
  write_file_whole(setup.folder / "data/b.h5", "no HDF5 at all");
  const Outcome damaged = setup.check({});
  CHECK(damaged.code == kExitData);
  says(damaged, {"b.h5"});
}

TEST_CASE("memory beyond the limit, repeated samples and missing checkpoints are warned of", "[config]") {
  const Setup setup;
  const Outcome plan = setup.check({"--set", "device.memory_limit_mb=1", "--set", "checkpoint.every_epochs=0"});
  CHECK(plan.code == kExitOk);
  says(plan, {"warning: device.memory_limit_mb = 1 is less than", "warning: no checkpoints",
              "seen more than once in an epoch"});
}

}  // namespace echelon::test
