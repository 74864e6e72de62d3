// SPDX-License-Identifier: Apache-2.0
// Settings that train.reproducible = true refuses: those that let the bits of a step depend on the number of replicas.
#include <stdexcept>

#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

// Returns good_reproducible_config() with `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = good_reproducible_config();
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the good config has no '" + from + "'");
  return text.replace(at, from.size(), to);
}

}  // namespace

const std::string& good_reproducible_config() {
  static const std::string text =
      "[model]\n"                    // 1
      "zoo = \"resnet20\"\n"         // 2
      "[data]\n"                     // 3
      "train = \"nowhere/train\"\n"  // 4
      "sharding = \"record\"\n"      // 5
      "[batch]\n"                    // 6
      "global = 64\n"                // 7
      "[train]\n"                    // 8
      "reproducible = true\n"        // 9
      "[exchange]\n"                 // 10
      "algorithm = \"butterfly\"\n"  // 11
      "[device]\n"                   // 12
      "kind = \"onednn\"\n"          // 13
      "threads = 1\n";               // 14
  return text;
}

const std::vector<BadConfig>& bad_reproducible_configs() {
  static const std::string fitting = "\"halving_doubling\" or \"butterfly\" or \"binomial\"";
  static const std::vector<BadConfig> all = {
      {"reproducible over a ring",
       with("butterfly", "ring"),
       {"@11:1", "exchange.algorithm = \"ring\" cannot be combined with", fitting}},
      {"reproducible by everyone to everyone", with("butterfly", "naive"), {"@11:1", "one binary tree", fitting}},
      {"reproducible by the library", with("butterfly", "mpi"), {"@11:1", "one binary tree", fitting}},
      {"reproducible over the default algorithm",
       with("[exchange]\nalgorithm = \"butterfly\"\n", ""),
       {"@9:1", "exchange.algorithm = \"ring\"", fitting}},
      {"reproducible and rounded on the wire",
       with("\"butterfly\"", "\"butterfly\"\ncodec = \"fp16\""),
       {"@12:1", "exchange.codec = \"fp16\"", "rounds sums", "\"none\" or \"lossless\""}},
      {"reproducible replicas that take steps of their own",
       with("algorithm = \"butterfly\"", "algorithm = \"butterfly\"\nstrategy = \"gossip\""),
       {"@12:1", "replicas take steps of their own"}},
      {"reproducible by Adasum",
       with("algorithm = \"butterfly\"", "reduction = \"adasum\""),
       {"@11:1", "the gradient of each replica, not on their sum alone"}},
      {"reproducible in sevenths",
       with("reproducible = true", "reproducible = true\nmicro_shards = 7"),
       {"@10:1", "not a power of two", "4 or 8"}},
      {"reproducible, a batch that does not divide", with("64", "60"), {"@7:1", "train.micro_shards = 8", "56 or 64"}},
      {"micro-shards of an everyday run",
       with("reproducible = true", "micro_shards = 4"),
       {"@9:1", "train.micro_shards is not used here", "train.reproducible = true"}},
      {"reproducible and accumulation", with("64", "64\naccumulation = 2"), {"@8:1", "leave batch.accumulation out"}},
      {"reproducible and shares", with("64", "64\nshares = [1, 3]"), {"@8:1", "leave batch.shares out"}},
      {"reproducible and weak scaling",
       with("64", "64\nscale_with_replicas = true"),
       {"@8:1", "leave batch.scale_with_replicas out"}},
      {"reproducible by file", with("\"record\"", "\"file\""), {"@5:1", "\"auto\" or \"record\""}},
      {"reproducible by whatever fits",
       with("sharding = \"record\"\n", ""),
       {"@8:1", "data.sharding = \"auto\"", "data.sharding = \"record\""}},
      {"reproducible and everything to everyone", with("\"record\"", "\"replicated\""), {"@5:1", "\"record\""}},
      {"reproducible as replicas",
       with("\"record\"", "\"record\"\nas_replicas = 2"),
       {"@6:1", "leave data.as_replicas out"}},
      {"reproducible and synchronised batch norm",
       with("\"resnet20\"", "\"resnet20\"\nsynchronised_batch_norm = true"),
       {"@3:1", "over each micro-shard"}},
      {"reproducible and one synchronised layer",
       with("zoo = \"resnet20\"", "[[model.layers]]\ntype = \"batch_norm\"\nsynchronised = true"),
       {"@2:", "leave 'synchronised' out of the layer"}},
      {"reproducible by the links that are there", with("butterfly", "auto"), {"@11:1", "\"auto\"", fitting}},
      {"reproducible and lazy",
       good_reproducible_config() + "[optimizer]\nlazy = true\n",
       {"@16:1", "leave optimizer.lazy out"}},
      {"reproducible on whatever is there", with("\"onednn\"", "\"auto\""), {"@13:1", "name the device", "\"onednn\""}},
      {"reproducible on as many threads as there are",
       with("threads = 1", "threads = 0"),
       {"@14:1", "device.threads = 1"}},
      {"reproducible, threads left out", with("threads = 1\n", ""), {"@9:1", "device.threads = 0", "= 1"}},
      {"reproducible on 3 replicas", good_reproducible_config(), {"@9:1", "3 replicas", "start 2 or 4"}, {}, {}, 3},
      {"reproducible on more replicas than parts",
       good_reproducible_config(),
       {"@9:1", "16 replicas", "start 8 replicas or set train.micro_shards = 16"},
       {},
       {},
       16},
  };
  return all;
}

}  // namespace echelon::test
