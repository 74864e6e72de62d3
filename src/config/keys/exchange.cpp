// SPDX-License-Identifier: Apache-2.0
// [exchange], and [exchange.<strategy>] of each strategy that has keys of its own (config/strategies/).
#include <fmt/format.h>

#include "config/keys/section.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline config::keys {
namespace {

template <class Keys>
void add_strategy(Table& all, const std::string& name, Keys ExchangeConfig::*keys) {
  Section<Config, Keys> section(all, "exchange." + name,
                                [=](Config& config) -> Keys& { return config.exchange.*keys; });
  Keys::describe(section);
}

std::string strategies_text() {
  std::string text;
  for (const StrategyTraits& strategy : kStrategies)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", strategy.name, strategy.help);
  return text;
}

}  // namespace

void add_exchange(Table& all) {
  std::vector<std::string> codecs = names_in(kCodecs);
  codecs.emplace(codecs.begin(), kNoCodec.name);
  auto exchange = part(all, "exchange", &Config::exchange);
  exchange.key("strategy", &ExchangeConfig::strategy, words(names_in(kStrategies)), strategies_text().c_str());
  exchange.key("algorithm", &ExchangeConfig::algorithm, words(names_in(kAlgorithms)),
               "all-reduce algorithm; nccl: between GPUs; auto: algorithm, segment size, bucket size, messages in "
               "flight and helpers are measured and chosen when the run starts");
  exchange.key(
      "reduction", &ExchangeConfig::reduction, words({"sum", "adasum"}),
      "sum: gradients of all samples are summed and divided by their number; adasum: gradients of two replicas at "
      "a time are combined along a butterfly, orthogonal parts added, parallel ones averaged");
  exchange.key("overlap", &ExchangeConfig::overlap, words({"none", "buckets", "layers"}),
               "none: exchange after back-propagation; buckets: during it; layers: during it and the next forward "
               "pass, which waits layer by layer. The default becomes buckets where the optimiser needs all gradients "
               "first (clip_norm, a scaled loss)");
  exchange.key("priority", &ExchangeConfig::priority, {},
               "gradients that the next forward pass needs first are sent first; the default becomes false for "
               "algorithms mpi and nccl");
  exchange.key("codec", &ExchangeConfig::codec, words(codecs),
               "compression of gradients (strategies with servers: also of weights) on the wire");
  exchange.key("density", &ExchangeConfig::density, range(1e-6, 1),
               "codec topk: fraction of the values that is sent; codec threshold: target fraction if tau = 0");
  exchange.key("tau", &ExchangeConfig::tau, range(0, 1e9),
               "codec threshold: values x with |x| >= tau are sent as +tau or -tau; 0: tau adapts to density");
  exchange.key("index_coding", &ExchangeConfig::index_coding, words({"raw", "golomb", "gamma"}),
               "codecs topk and threshold: encoding of the indices of values");
  exchange.key(
      "error_feedback", &ExchangeConfig::error_feedback, {},
      "lossy codecs: the encoding error of a message of gradients is added to the next one; false: it is dropped, "
      "for comparison");
  exchange.key(
      "code_sums", &ExchangeConfig::code_sums, {},
      "codec onebit: every replica sums a part of the gradients and sends the sums coded once more, which takes "
      "2(k-1) messages of the whole instead of k(k-1); false: sums are not coded again");
  exchange.key("codec_warmup_steps", &ExchangeConfig::codec_warmup_steps, range(0, 1e12),
               "number of steps at the start of the run that send uncoded gradients");
  exchange.key("bucket_mb", &ExchangeConfig::bucket_mb, range(0.001, 4096),
               "size of a gradient bucket, the unit of the exchange");
  exchange.key("sparse_density", &ExchangeConfig::sparse_density, range(0, 1),
               "the gradient of a sparse embedding is sent as a whole table if replicas touch more than this "
               "fraction of its rows on average; 0: whenever that takes fewer bytes; 1: never");
  exchange.key("segment_kb", &ExchangeConfig::segment_kb, range(1, 1048576),
               "longest message of an all-reduce (its pipelining granularity), except of naive, shared, mpi and nccl");
  exchange.key("messages_in_flight", &ExchangeConfig::messages_in_flight, range(1, 1024),
               "limit of a rank's messages in flight; further ones wait in order of priority", kNeutral);
  exchange.key(
      "helpers", &ExchangeConfig::helpers, range(0, 256),
      "threads of a rank that sum gradients and code them for topk, threshold, int8 and onebit, besides the one "
      "that sends and receives",
      kNeutral);
  exchange.key("servers", &ExchangeConfig::servers, range(0, 65536),
               "algorithm or strategy server: number of ranks that each serve a part of the parameters, spread over "
               "the hosts; 0: all");
  exchange.key("inner", &ExchangeConfig::inner,
               words(names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.halves; })),
               "algorithm hierarchical: inside a host");
  exchange.key("outer", &ExchangeConfig::outer,
               words(names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.plain_plan(); })),
               "algorithm hierarchical: between hosts");
  exchange.key("warmup_replicas", &ExchangeConfig::warmup_replicas, range(0, 65536),
               "number of replicas that train at first, while the others wait; 0: all");
  exchange.key("warmup_steps", &ExchangeConfig::warmup_steps, range(0, 1e12),
               "number of steps that each of warmup_replicas takes before the others join");
  exchange.key("warmup_epochs", &ExchangeConfig::warmup_epochs, range(0, 1e6),
               "the same as a number of epochs, or a fraction of one");
  exchange.key("warmup_each_epoch", &ExchangeConfig::warmup_each_epoch, {},
               "warm up at the beginning of each epoch instead of once at the beginning of the run");
  exchange.key("verify_every_steps", &ExchangeConfig::verify_every_steps, at_least(0),
               "interval of comparisons of the replicas' weights; 0: only at step 0 and at the end");
  exchange.key("check_messages", &ExchangeConfig::check_messages, {},
               "each message carries a CRC32C and its number; one that arrives damaged, or after a lost one, ends the "
               "run with exit code 3",
               kNeutral);

#define X(strategy, Keys, ...) add_strategy(all, #strategy, &ExchangeConfig::strategy);
  ECHELON_STRATEGIES(X)
#undef X
}

}  // namespace echelon::inline config::keys
