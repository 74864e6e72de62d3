// SPDX-License-Identifier: Apache-2.0
// The options of `echelon bench ..`.
#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

Run declare_bench_step(CLI::App& app) {
  auto o = held<BenchStepOptions>();
  app.add_option("config", o->config, "experiment (TOML)")->required();
  add_sets(app, o->sets);
  app.add_option("--steps", o->steps, "timed steps; 0: 50, or as many as fit in 20 s, at least 3")
      ->capture_default_str();
  app.add_option("--batch", o->batch, "samples per step; 0: one replica's part of batch.global")->capture_default_str();
  app.add_option("--threads", o->threads, "threads of one op")->capture_default_str();
  app.add_option("--shape", o->shape, "shape of a sample for model.zoo, whatever the data: C,H,W")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  app.add_flag("--ops", o->ops, "every op with its implementation, time and rate");
  app.add_option("--table", o->table, "write measured op times here, for device.paced_table");
  app.add_flag("--json", o->json, "one JSON line instead of tables");
  return [o] { return run_bench_step(*o); };
}

Run declare_bench_update(CLI::App& app) {
  auto o = held<BenchUpdateOptions>();
  app.add_option("config", o->config, "experiment (TOML) with the model")->required();
  add_sets(app, o->sets);
  app.add_option("--rounds", o->rounds, "timed updates of each rule")->capture_default_str();
  app.add_option("--threads", o->threads, "threads of one update")->capture_default_str();
  app.add_flag("--json", o->json, "one object of JSON, seconds by rule, instead of the table");
  return [o] { return run_bench_update(*o); };
}

namespace {

// The same settings as in [network].
void add_network(CLI::App& app, NetworkConfig& network) {
  auto* rate = app.add_option("--shaped", network.rate,
                              "slow messages down to cards of this rate, 1gbit, as network.rate does for runs");
  app.add_option("--delay-us", network.delay_us, "with --shaped: latency in microseconds, as network.delay_us")
      ->check(number_in(0.0, 1e7))
      ->needs(rate);
  app.add_option("--ranks-per-host", network.ranks_per_host,
                 "with --shaped: consecutive ranks that form a host, as network.ranks_per_host")
      ->check(CLI::Range(1, 65536))
      ->needs(rate);
}

void add_allreduce(CLI::App& app, BenchAllreduceOptions* o) {
  app.add_option("--algorithms", o->algorithms, "names, or all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--sizes", o->sizes, "buffer sizes: a range, doubled from its start to its end, or a list: 1KiB,1MiB")
      ->capture_default_str();
  app.add_option("--segment-kb", o->segment_kb, "longest message, as exchange.segment_kb")->capture_default_str();
  app.add_option("--servers", o->servers, "server: as exchange.servers")->capture_default_str();
  app.add_option("--inner", o->inner, "hierarchical: as exchange.inner")->capture_default_str();
  app.add_option("--outer", o->outer, "hierarchical: as exchange.outer")->capture_default_str();
  app.add_option("--iterations", o->iterations, "timed iterations for each size and algorithm")->capture_default_str();
  app.add_option("--warmup", o->warmup, "untimed iterations before them")->capture_default_str();
  app.add_option("--dtype", o->dtype, "f32 or f64")->capture_default_str();
  app.add_option("--rate", o->rate,
                 "bandwidth of a rank's link, e.g. 1gbit: prints the bound 2(k-1)/k G / rate beside every time");
  add_network(app, o->network);
  app.add_flag("--json", o->json, "one line of JSON for each row instead of the table");
}

}  // namespace

Run declare_bench_allreduce(CLI::App& app) {
  auto o = held<BenchAllreduceOptions>();
  add_allreduce(app, o.get());
  return [o] { return run_bench_allreduce(*o); };
}

BenchAllreduceOptions parse_bench_allreduce(const std::vector<std::string>& words) {
  BenchAllreduceOptions options;
  CLI::App app("bench allreduce");
  add_allreduce(app, &options);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes the last word first
  } catch (const CLI::Error& error) {
    throw ConfigError(fmt::format("bench allreduce {}: {}", fmt::join(words, " "), error.what()));
  }
  return options;
}

Run declare_bench_network(CLI::App& app) {
  auto o = held<BenchNetworkOptions>();
  app.add_option("--out", o->out, "write the matrices of latency and bandwidth here, as JSON")->type_name("FILE");
  app.add_option("--figure", o->figure, "write the bandwidths here, as SVG")->type_name("FILE");
  app.add_option("--seconds", o->seconds, "minimum duration of a link's largest message (up to 64 MiB)")
      ->capture_default_str();
  app.add_option("--limit", o->limit_s, "seconds after which a link that does not answer counts as blocked")
      ->capture_default_str();
  add_network(app, o->network);
  app.add_flag("--json", o->json, "print what --out writes instead of tables");
  return [o] { return run_bench_network(*o); };
}

Run declare_bench_data(CLI::App& app) {
  auto o = held<BenchDataOptions>();
  app.add_option("config", o->config, "experiment (TOML) with the data")->required();
  add_sets(app, o->sets);
  app.add_option("--readers", o->readers, "replicas that read their shares at the same time")->capture_default_str();
  app.add_option("--batch", o->batch, "samples per batch of a reader; 0: 64, fewer where samples are large")
      ->capture_default_str();
  app.add_option("--seconds", o->seconds, "reading ends after this time, or with the epochs")->capture_default_str();
  app.add_option("--epochs", o->epochs, "epochs to read")->capture_default_str();
  app.add_option("--out", o->out, "write the first batch of the first reader here, as HDF5: what the model sees")
      ->type_name("FILE");
  app.add_flag("--json", o->json, "one JSON line instead of text");
  return [o] { return run_bench_data(*o); };
}

Run declare_bench_codec(CLI::App& app) {
  auto o = held<BenchCodecOptions>();
  app.add_option("--mb", o->mb, "MiB of values")->capture_default_str();
  app.add_option("--rounds", o->rounds, "timed rounds of each codec")->capture_default_str();
  app.add_option("--density", o->density, "topk and threshold: fraction of the values that is sent")
      ->capture_default_str();
  app.add_option("--tau", o->tau, "threshold; 0: adapts to density")->capture_default_str();
  return [o] { return run_bench_codec(*o); };
}

Run declare_bench_control(CLI::App& app) {
  auto o = held<BenchControlOptions>();
  app.add_option("config", o->config, "experiment (TOML) whose model's buckets are planned too");
  add_sets(app, o->sets);
  app.add_option("--ranks", o->ranks, "numbers of ranks")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--rounds", o->rounds, "measured rounds of each part")->capture_default_str();
  app.add_option("--mb", o->mb, "MiB of the bucket whose plans are built")->capture_default_str();
  app.add_flag("--markdown", o->markdown, "tables in Markdown");
  return [o] { return run_bench_control(*o); };
}

}  // namespace echelon::cli
