// SPDX-License-Identifier: Apache-2.0
// Settings of [exchange] that are refused with strategies that mix weights, Adasum, and sums in shared memory.
#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

std::string plus(const std::string& more) { return good_config() + more; }

}  // namespace

const std::vector<BadConfig>& bad_exchange_configs() {
  static const std::vector<BadConfig> all = {
      {"symmetric mixing over links that go one way",
       plus("[exchange]\nstrategy = \"gossip\"\n[exchange.gossip]\npush_sum = false\n"),
       {"@23:", "topology \"exponential\" go only one way", "push_sum = true, or topology = \"ring\" or \"complete\""}},
      {"gossip whose mean GPUs form",
       plus("[exchange]\nstrategy = \"gossip\"\nalgorithm = \"nccl\"\n[device]\nkind = \"cuda\"\n"),
       {"@22:", "weights are averaged in host memory", "\"ring\""}},
      {"a codec beside sums in shared memory",
       plus("[exchange]\nalgorithm = \"shared\"\ncodec = \"fp16\"\n"),
       {"@21:", "summed in shared memory as they are", "\"ring\""}},
      {"a codec beside such sums inside hosts",
       plus("[exchange]\nalgorithm = \"hierarchical\"\ninner = \"shared\"\ncodec = \"bf16\"\n"),
       {"@22:", "exchange.inner", "summed in shared memory as they are"}},
      {"coded gossip",
       plus("[exchange]\nstrategy = \"gossip\"\ncodec = \"fp16\"\n"),
       {"@22:", "the strategy sends uncoded values", "nearest valid: \"none\""}},
      {"a density beside a fixed tau",
       plus("[exchange]\nstrategy = \"strom\"\n[exchange.strom]\ntau = 0.1\ndensity = 0.1\n"),
       {"@24:1", "exchange.strom.density is not used here", "tau = 0, which adapts to it"}},
      {"coded entries",
       plus("[exchange]\nstrategy = \"strom\"\ncodec = \"fp16\"\n"),
       {"@22:", "the strategy sends uncoded values", "nearest valid: \"none\""}},
      {"slices of replicas that do not step together",
       plus("[exchange]\nstrategy = \"strom\"\n[exchange.strom]\nrounds = \"asynchronous\"\n[parallel]\ntensor = 2\n"),
       {"parallel.tensor", "would be updated in different orders", "use parallel.pipeline"}},
      {"a queue of batches for replicas of several ranks",
       plus("[exchange]\nstrategy = \"asynchronous\"\n[parallel]\npipeline = 2\n"),
       {"data.balance", "would have to draw the same batches"},
       {"data.balance=queue"}},
      {"a replay of replicas of several ranks",
       plus("[exchange]\nstrategy = \"asynchronous\"\n[parallel]\npipeline = 2\n[run]\nreplay = \"results/run\"\n"),
       {"run.replay", "recorded for whole models"}},
      {"a warm-up of replicas that step together",
       plus("[exchange]\nwarmup_replicas = 1\nwarmup_steps = 3\n"),
       {"@21:", "all take samples in every step", "leave exchange.warmup_replicas out",
        "\"asynchronous\" or \"stale_synchronous\""}},
      {"a warm-up of no length",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_replicas = 1\n"),
       {"@22:", "needs the length of the warm-up", "warmup_steps or warmup_epochs"}},
      {"a warm-up of two lengths",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_replicas = 1\nwarmup_steps = 3\nwarmup_epochs = 1\n"),
       {"@22:", "needs the length of the warm-up", "either"}},
      {"a warm-up longer than the epoch that begins with it",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_replicas = 1\nwarmup_epochs = 1.5\nwarmup_each_epoch = "
            "true\n"),
       {"@23:", "exchange.warmup_epochs = 1.5 is longer than the epoch", "at most 1"}},
      {"the length of no warm-up",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_steps = 3\n"),
       {"@22:", "exchange.warmup_steps is not used here", "exchange.warmup_replicas > 0"}},
      {"a replay of replicas that step together",
       plus("[run]\nreplay = \"results/run\"\n"),
       {"@21:", "replicas that step together have no order of arrivals", "leave run.replay out"}},
      {"a warm-up of replicas that draw their batches",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_replicas = 1\nwarmup_steps = 3\n"),
       {"data.balance", "a warm-up reserves steps for the first replicas", "leave data.balance out"},
       {"data.balance=queue"}},
      {"a replay of batches that are drawn",
       plus("[exchange]\nstrategy = \"stale_synchronous\"\n[run]\nreplay = \"results/run\"\n"),
       {"data.balance", "which replica drew which batch is not recorded", "leave data.balance out"},
       {"data.balance=queue"}},
      {"a replay that goes on without lost workers",
       plus("[exchange]\nstrategy = \"asynchronous\"\n[run]\nreplay = \"results/run\"\n"),
       {"run.on_lost_worker", "the recorded order covers all workers", "nearest valid: \"stop\""},
       {"run.on_lost_worker=continue"}},
      {"a warm-up that goes on without lost workers",
       plus("[exchange]\nstrategy = \"asynchronous\"\nwarmup_replicas = 1\nwarmup_steps = 3\n"),
       {"run.on_lost_worker", "a warm-up depend on the number of workers", "nearest valid: \"stop\""},
       {"run.on_lost_worker=continue"}},
      {"Adasum of codes",
       plus("[exchange]\nreduction = \"adasum\"\ncodec = \"fp16\"\n"),
       {"@22:", "dot products of uncoded gradients", "nearest valid: \"none\""}},
      {"Adasum around a ring of halves",
       plus("[exchange]\nreduction = \"adasum\"\nalgorithm = \"halving_doubling\"\n"),
       {"@22:1", "Adasum has a fixed exchange of its own", "leave it out"}},
      {"Adasum of slices",
       plus("[exchange]\nreduction = \"adasum\"\n[parallel]\ntensor = 2\n"),
       {"parallel.tensor", "dot products of whole parameters"}},
      {"Adasum of local steps",
       plus("[exchange]\nstrategy = \"gossip\"\nreduction = \"adasum\"\n"),
       {"@22:1", "exchange.reduction is not used here", "it is for exchange.strategy = \"synchronous\""}},
  };
  return all;
}

}  // namespace echelon::test
