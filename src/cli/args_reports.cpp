// SPDX-License-Identifier: Apache-2.0
// The options of the verbs that read runs or predict them: report, compare, plan, sweep micro.
#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

Run declare_report(CLI::App& app) {
  auto o = held<ReportOptions>();
  app.add_option("runs", o->runs, "folders of runs or attempts, or folders above them")->type_name("RUN");
  app.add_flag("--figures", o->figures,
               "list the recorded figures: unit, aggregation over ranks, steps and runs, meaning");
  app.add_option("--out", o->out, "folder to write to")->capture_default_str();
  app.add_option("--name", o->name, "base name of the files written: NAME.md, NAME.csv, NAME.json")
      ->capture_default_str();
  app.add_option("--tensorboard", o->tensorboard,
                 "instead of the tables, write event files for TensorBoard into this folder")
      ->type_name("FOLDER");
  app.add_option("--mllog", o->mllog,
                 "instead of the tables, write MLPerf log lines (:::MLLOG) into result_N.txt of this folder")
      ->type_name("FOLDER");
  app.add_option("--claims", o->claims,
                 "instead of the tables, write the verdict on every record of a claim (claim.json of studies) in this "
                 "folder into claims.md and claims.svg, or --name")
      ->type_name("FOLDER");
  return [o] { return run_report(*o); };
}

Run declare_compare(CLI::App& app) {
  auto o = held<CompareOptions>();
  app.add_option("base", o->base, "a run, an attempt or a folder of runs of the build before")
      ->type_name("BASE")
      ->required();
  app.add_option("new", o->fresh, "the same of the build to be checked")->type_name("NEW")->required();
  app.add_option("--tolerance", o->tolerances,
                 "smallest relative change of throughput that counts (default 0.03), or with a group: accuracy=0.005 "
                 "(absolute), loss=0.02, counts=0 (bytes, messages), memory=0.05; may be repeated")
      ->allow_extra_args(false)
      ->type_name("[GROUP=]PART");
  app.add_option("--only", o->only, "compare these alone: throughput, accuracy, loss, counts, memory")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("GROUP,..");
  app.add_option("--allow", o->allowed,
                 "a key, a section (exchange) or a fact (threads) in which BASE and NEW may differ; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  app.add_option("--significance", o->significance, "probability of reporting a change that is only chance")
      ->capture_default_str();
  app.add_option("--junit", o->junit, "write a JUnit XML file as well")->type_name("FILE");
  app.add_flag(
      "--weights", o->weights,
      "instead of figures, compare weights tensor by tensor; BASE and NEW are runs, checkpoints or safetensors "
      "files; with --tolerance 1e-4: code 8 if a value differs by more than this part of its tensor's largest");
  app.add_flag("--json", o->json, "JSON instead of tables");
  return [o] { return run_compare(*o); };
}

Run declare_plan(CLI::App& app) {
  auto o = held<PlanOptions>();
  app.add_option("config", o->config, "the experiment, a TOML file")->type_name("CONFIG")->required();
  add_sets(app, o->sets);
  app.add_option("--from", o->from,
                 "folder of runs, or a JSON report; may be repeated: the run with the fewest ranks measures the step")
      ->allow_extra_args(false)
      ->type_name("RUN");
  app.add_option("--step", o->step,
                 "instead of --from, a described step: forward_ms=60,backward_ms=120,jitter=0.03 or a file with [step]")
      ->type_name("TEXT|FILE");
  app.add_option("--network", o->network,
                 "25gbit; 25gbit,ranks_per_host=8,inside=nvlink; a file with [network]; or one of bench network "
                 "--out (.json); default: the config's network.rate, else 10gbit")
      ->type_name("TEXT|FILE");
  app.add_option("--replicas", o->replicas, "8..10000 (doubling), or a list")->capture_default_str();
  app.add_option("--scaling", o->scaling, "weak: keep each replica's batch; strong: keep the global batch")
      ->capture_default_str();
  app.add_option("--compare", o->compare, "what else is predicted: strategies, algorithms, codecs, meshes, or none")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--node-hour", o->node_hour,
                 "price of an hour of one host, in cost.currency; default: cost.node_hour of the config")
      ->check(number_in(0.0, 1e9));
  app.add_option("--out", o->out, "folder to write NAME.md, NAME.csv, NAME.json and NAME.svg to");
  app.add_option("--name", o->name, "base name of these files")->capture_default_str();
  return [o] { return run_plan(*o); };
}

Run declare_sweep_micro(CLI::App& app) {
  auto o = held<SweepMicroOptions>();
  app.add_option("config", o->launch.config, "the experiment, TOML")->required();
  add_sets(app, o->launch.sets);
  app.add_option("--ranks", o->launch.ranks, "all processes of the launch; default 1");
  app.add_option("--hosts", o->launch.hosts, "number of hosts")->capture_default_str();
  app.add_option(
      "--memory", o->memory,
      "memory of a rank, e.g. 8GiB; default: device.memory_limit_mb, or what this machine has for its ranks");
  return [o] { return run_sweep_micro(*o); };
}

}  // namespace echelon::cli
