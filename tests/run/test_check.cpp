// SPDX-License-Identifier: Apache-2.0
// Compares the numbers that `echelon check` plans on existing data with numbers worked out by hand.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/unit/data/shards.hpp"

namespace echelon::test {
namespace {

// Holds 100 samples of (1, 28, 28) in 4 files, and an experiment on them.
struct Setup {
  TempFolder folder;
  std::string config = folder / "lenet.toml";

  Setup() {
    make_folders(folder / "data");
    ShardSpec spec;
    spec.sample = Shape{1, 28, 28};
    write_shards(folder / "data", {40, 30, 20, 10}, spec);
    write_file_whole(config, fmt::format("[model]\nzoo = \"cnn_32_64\"\n[data]\ntrain = \"{}\"\n[batch]\nglobal = 16\n"
                                         "accumulation = 2\n[train]\nepochs = 3\n[device]\nkind = \"reference\"\n"
                                         "[exchange]\nbucket_mb = 100\n",
                                         folder / "data"));
  }

  Outcome check(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"check", config};
    words.insert(words.end(), more.begin(), more.end());
    return run_echelon(words);
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
  // LeNet has 320 + 18,496 + 401,536 + 1,290 parameters; a ring sends 2 (k - 1) gradients of 4 bytes.
  const double gradients = 4.0 * 421642;
  says(plan, {"100 samples of (1, 28, 28), 10 classes, u8 in 4 files", "4 on 2 hosts (at most 2 a host)",
              "16 = micro-batch 2 x accumulation 2 x 4 replicas", "by record (auto), 4 files for 4 replicas",
              "7 an epoch, 21 in all", "classes     mixed, by chunk, file and replica", "421,642 parameters",
              fmt::format("weights {:.2f} MiB, gradients {:.2f} MiB, optimiser {:.2f} MiB", gradients / 1048576,
                          gradients / 1048576, gradients / 1048576),
              fmt::format("ring all-reduce in 1 bucket: {:.2f} MiB a step over all ranks", 6 * gradients / 1048576),
              "conv1", "warning: no data.test"});
  // The files have 40, 30, 20 and 10 samples.
  const Outcome files = setup.check({"--replicas", "4", "--hosts", "2", "--set", "data.sharding=file"});
  says(files, {"by file, 4 files for 4 replicas", "replica 0: 40 samples: a0.h5", "10 an epoch, 30 in all",
               "40 samples are seen more than once in an epoch, up to 4 times (data.ragged = \"wrap\"; data.sharding = "
               "\"record\" deals them evenly)"});
  const Outcome nodes = setup.check({"--replicas", "4", "--hosts", "2", "--set", "data.sharding=node"});
  CHECK(nodes.code == kExitOk);
  says(nodes, {"by node, 4 files for 4 replicas", "replica 0: 50 samples: a0.h5", "replica 1: 50 samples: a0.h5",
               "replica 2: 50 samples: a1.h5", "replica 3: 50 samples: a1.h5"});
}

TEST_CASE("threads and ranks of a host are compared with its cores", "[config]") {
  const Setup setup;
  says(setup.check({"--replicas", "1", "--set", "device.threads=1"}), {"1 thread a rank x 1 rank a host = 1 on "});
  says(setup.check({"--replicas", "4", "--hosts", "2", "--set", "device.threads=4096"}),
       {"4,096 threads a rank x 2 ranks a host = 8,192 on ", " threads share a core"});
}

TEST_CASE("a job of Slurm without a GPU is told of device.kind = cuda", "[config]") {
  const Setup setup;
  const std::string warning = "did not request a GPU from Slurm";
  const auto warns = [&](const Environment& env) {
    return run_echelon({"check", setup.config, "--set", "device.kind=cuda"}, {.env = env}).out.find(warning) !=
           std::string::npos;
  };
  CHECK(warns({{"SLURM_JOB_ID", "4711"}}));
  CHECK_FALSE(warns({{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_GPUS", "0"}}));
  CHECK_FALSE(warns({}));
}

TEST_CASE("one replica exchanges nothing; many small buckets cost the same bytes", "[config]") {
  const Setup setup;
  says(setup.check({}), {"none: one replica", "7 an epoch"});
  says(setup.check({"--replicas", "2", "--set", "exchange.bucket_mb=0.05"}), {"3.22 MiB a step over all ranks"});
}

TEST_CASE("one rank that stands for several replicas is planned with their shares", "[config]") {
  const Setup setup;
  // A step takes 4 and 12 of 16 samples, from files of 20 samples and of 80, which take 7 steps.
  const Outcome plan =
      setup.check({"--set", "data.as_replicas=2", "--set", "batch.shares=[1, 3]", "--set", "data.sharding=file"});
  CHECK(plan.code == kExitOk);
  says(plan, {"16 = micro-batch 2+6 x accumulation 2 x 2 replicas processed one after another (data.as_replicas)",
              "replica 0: 20 samples", "replica 1: 80 samples", "7 an epoch"});
}

TEST_CASE("what the data cannot satisfy is refused with the numbers", "[config]") {
  const Setup setup;
  const Outcome many = setup.check({"--replicas", "101", "--set", "batch.global=202"});
  CHECK(many.code == kExitConfig);
  says(many, {"101 replicas, but only 100 samples"});
  const Outcome hosts = setup.check({"--replicas", "2", "--hosts", "3"});
  CHECK(hosts.code == kExitConfig);
  says(hosts, {"--hosts 3: must be 1 to 2"});
  write_file_whole(setup.folder / "data/b.h5", "no HDF5 at all");
  const Outcome damaged = setup.check({});
  CHECK(damaged.code == kExitData);
  says(damaged, {"b.h5"});
}

TEST_CASE("repeated samples and missing checkpoints are warned of", "[config]") {
  const Setup setup;
  const Outcome plan = setup.check({"--set", "checkpoint.every_epochs=0"});
  CHECK(plan.code == kExitOk);
  says(plan, {"warning: no regular checkpoints", "seen more than once in an epoch"});
}

TEST_CASE("memory beyond the limit of a rank, or beyond this machine's, is refused below the plan", "[config]") {
  const Setup setup;
  const Outcome limit = setup.check({"--set", "device.memory_limit_mb=1"});
  CHECK(limit.code == kExitMemory);
  says(limit, {"421,642 parameters", "device.memory_limit_mb = 1 is less than the"});
  // The outputs of two convolutions and their gradients take more than 200 KB per sample.
  const Outcome machine =
      setup.check({"--replicas", "100", "--set", "batch.global=2000000", "--set", "device.kind=onednn"});
  CHECK(machine.code == kExitMemory);
  says(machine, {"421,642 parameters", "100 ranks on one host take", "this machine has"});
#if !defined(__SANITIZE_ADDRESS__)  // AddressSanitizer's operator new ends the process instead of throwing
  const Outcome uncountable = setup.check({"--set", "batch.global=8000000"});
  CHECK(uncountable.code == kExitMemory);
  says(uncountable, {"batches of 4000000 samples need more memory than this machine has"});
#endif
}

TEST_CASE("check counts the ranks of a launch: servers and the ranks of split models among them", "[config]") {
  const Setup setup;
  const auto ranks = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"--set", "batch.accumulation=1"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome plan = setup.check(all);
    INFO(plan.out << plan.err);
    CHECK(plan.code == kExitOk);
    return plan.out;
  };
  CHECK_THAT(ranks({"--ranks", "5", "--set", "exchange.strategy=server", "--set", "exchange.server.ranks=1"}),
             Catch::Contains("5 = 4 workers + 1 server"));
  // 66 samples divide over 2 replicas of 2 ranks, but not over 4 replicas of one rank.
  CHECK_THAT(ranks({"--ranks", "4", "--set", "parallel.pipeline=2", "--set", "batch.global=66"}),
             Catch::Contains("mesh: data 2 x pipeline 2"));
  CHECK_THAT(ranks({"--ranks", "1", "--set", "parallel.pipeline=2"}),
             Catch::Contains("the model is not split, because [parallel] needs groups of 2 ranks"));
  CHECK_THAT(ranks({"--replicas", "1", "--set", "parallel.pipeline=2"}), Catch::Contains("mesh: data 1 x pipeline 2"));
  const Outcome odd = setup.check({"--ranks", "3", "--set", "parallel.pipeline=2"});
  CHECK(odd.code == kExitConfig);
  says(odd, {"3 ranks cannot be divided into such groups"});
  const Outcome both = setup.check({"--ranks", "4", "--replicas", "4"});
  CHECK(both.code == kExitConfig);
  says(both, {"--replicas and --ranks exclude each other"});
  const Outcome many = setup.check({"--replicas", "1000000"});
  CHECK(many.code == kExitConfig);
  says(many, {"--replicas 1000000: must be 1 to 65536"});
}

TEST_CASE("split models with rules that look at whole parameters are planned", "[config]") {
  const Setup setup;
  for (const char* set : {"optimizer.rule=lars", "optimizer.rule=lamb", "optimizer.clip_norm=1"})
    for (const std::vector<std::string>& split :
         {std::vector<std::string>{"parallel.tensor=2"}, {"parallel.split=auto", "device.memory_limit_mb=100"}}) {
      std::vector<std::string> words = {"--ranks", "2", "--set", set};
      for (const std::string& part : split) words.insert(words.end(), {"--set", part});
      const Outcome plan = setup.check(words);
      INFO(set << " " << split.front() << "\n" << plan.out << plan.err);
      CHECK(plan.code == kExitOk);
    }
}

TEST_CASE("check prints the table of combinations without a config", "[config]") {
  const Outcome matrix = run_echelon({"check", "--combinations"});
  CHECK(matrix.code == kExitOk);
  says(matrix,
       {"halving_doubling,butterfly,binomial", "the library sums uncoded values", "Layers that each split divides"});
}

TEST_CASE("results that cannot be printed are an error of the environment", "[config]") {
  const Setup setup;
  const std::string shards = setup.folder / "data";
  for (const std::string& words : {"check " + setup.config, std::string("check --keys"),
                                   std::string("check --combinations"), "data inspect " + shards}) {
    const Outcome full = run_process(
        {.argv = {"sh", "-c", echelon_binary() + " " + words + " > /dev/full"}, .cwd = "", .env = {}, .limit_s = 60});
    INFO(words << "\n" << full.err);
    CHECK(full.code == kExitEnvironment);
    says(full, {"standard output cannot be written"});
  }
}

}  // namespace echelon::test
