// [exchange], and [exchange.<strategy>] of each strategy that has keys of its own (config/strategies/).
#include "config/keys/section.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::keys {
namespace {

template <class Keys>
void add_strategy(Table& all, const std::string& name, Keys ExchangeConfig::*keys) {
  Section<Config, Keys> section(all, "exchange." + name,
                                [=](Config& config) -> Keys& { return config.exchange.*keys; });
  Keys::describe(section);
}

}  // namespace

void add_exchange(Table& all) {
  std::vector<std::string> codecs = names_in(kCodecs);
  codecs.emplace(codecs.begin(), kNoCodec.name);
  auto exchange = part(all, "exchange", &Config::exchange);
  exchange.key("strategy", &ExchangeConfig::strategy, words(names_in(kStrategies)),
               "synchronous: all-reduce; server: parameter servers take the steps");
  exchange.key("algorithm", &ExchangeConfig::algorithm, words(names_in(kAlgorithms)),
               "of the all-reduce; nccl: between GPUs; auto: this, segments and buckets are measured and chosen when "
               "the run starts");
  exchange.key(
      "overlap", &ExchangeConfig::overlap, words({"none", "buckets", "layers"}),
      "none: after back-propagation; buckets: beside it; layers: and the next forward waits layer by layer. The "
      "default gives way to buckets where the optimiser needs every gradient first (clip_norm, a scaled loss)");
  exchange.key(
      "priority", &ExchangeConfig::priority, {},
      "what the next forward needs first goes first; the default gives way to false for algorithms mpi and nccl");
  exchange.key("codec", &ExchangeConfig::codec, words(codecs),
               "how gradients, with strategy server weights too, are written on the wire; what a lossy one leaves out "
               "is sent later");
  exchange.key("density", &ExchangeConfig::density, range(1e-6, 1),
               "codec topk: part of the values that is sent; codec threshold: what tau = 0 aims at");
  exchange.key("tau", &ExchangeConfig::tau, range(0, 1e9),
               "codec threshold: values of this size and more are sent as +tau or -tau; 0: adapts to density");
  exchange.key("index_coding", &ExchangeConfig::index_coding, words({"raw", "golomb", "gamma"}),
               "codecs topk and threshold: how the places of values are written");
  exchange.key("codec_warmup_steps", &ExchangeConfig::codec_warmup_steps, range(0, 1e12),
               "the first steps of the run send gradients as they are, then the codec starts");
  exchange.key("bucket_mb", &ExchangeConfig::bucket_mb, range(0.001, 4096), "gradients sent together");
  exchange.key("sparse_density", &ExchangeConfig::sparse_density, range(0, 1),
               "a step sends a sparse embedding's table whole where replicas touch more than this share of its rows on "
               "average; 0: where that takes fewer bytes, 1: never");
  exchange.key("segment_kb", &ExchangeConfig::segment_kb, range(1, 1048576),
               "longest message of an all-reduce, except of naive, mpi and nccl: pipelining grain");
  exchange.key("servers", &ExchangeConfig::servers, range(0, 65536),
               "algorithm or strategy server: ranks that serve a part each, spread over the hosts; 0: all");
  exchange.key("inner", &ExchangeConfig::inner,
               words(names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.halves; })),
               "algorithm hierarchical: inside a host");
  exchange.key("outer", &ExchangeConfig::outer,
               words(names_where(kAlgorithms, [](const AlgorithmTraits& a) { return a.plain_plan(); })),
               "algorithm hierarchical: between hosts");
  exchange.key("verify_every_steps", &ExchangeConfig::verify_every_steps, at_least(0),
               "checksums of every replica's weights; 0: at step 0 and the end");

#define X(strategy, Keys, ...) add_strategy(all, #strategy, &ExchangeConfig::strategy);
  ECHELON_STRATEGIES(X)
#undef X
}

}  // namespace echelon::keys
