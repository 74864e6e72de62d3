// What [exchange] refuses of strategies that mix weights, and of Adasum.
#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

std::string plus(const std::string& more) { return good_config() + more; }

}  // namespace

const std::vector<BadConfig>& bad_exchange_configs() {
  static const std::vector<BadConfig> all = {
      {"symmetric mixing over links that go one way",
       plus("[exchange]\nstrategy = \"gossip\"\n[exchange.gossip]\npush_sum = false\n"),
       {"@23:", "topology \"exponential\" go one way", "push_sum = true, or topology = \"ring\" or \"complete\""}},
      {"gossip whose mean GPUs form",
       plus("[exchange]\nstrategy = \"gossip\"\nalgorithm = \"nccl\"\n[device]\nkind = \"cuda\"\n"),
       {"@22:", "weights are averaged in host memory", "\"ring\""}},
      {"coded gossip",
       plus("[exchange]\nstrategy = \"gossip\"\ncodec = \"fp16\"\n"),
       {"@22:", "the strategy sends uncoded values", "nearest valid: \"none\""}},
      {"a warm-up of replicas that step together",
       plus("[exchange]\nwarmup_replicas = 1\nwarmup_steps = 3\n"),
       {"@21:", "exchange.warmup_replicas is not used here", "exchange.strategy = \"asynchronous", "leave it out"}},
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
       {"@21:", "run.replay is not used here", "whose order of arrivals is recorded"}},
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
