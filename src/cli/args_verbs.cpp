// SPDX-License-Identifier: Apache-2.0
// The verbs and their options: fills the structs of options.hpp.
#include "cli/args_verbs.hpp"

#include <memory>
#include <string>
#include <vector>

#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {
namespace {

Run declare_train(CLI::App& app) {
  auto o = held<TrainOptions>();
  app.add_option("config", o->config, "the experiment, TOML")->required();
  add_sets(app, o->sets);
  app.add_option("--local-ranks", o->local_ranks,
                 "run this many ranks as threads of this process, instead of under mpirun: for debugging")
      ->check(CLI::Range(1, 64))
      ->type_name("K");
  return [o] { return run_train(*o); };
}

Run declare_scale(CLI::App& app) {
  auto o = held<ScaleOptions>();
  app.add_option("study", o->study, "the experiment with a section [study], TOML")->type_name("STUDY")->required();
  add_sets(app, o->sets);
  app.add_option("--ranks", o->ranks, "sizes of the study to run; default: all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("K,..");
  auto* list = app.add_flag("--list", o->list, "list the cells, their state and folders, and run nothing");
  auto* report = app.add_flag("--report", o->report, "write the report of what was run so far, and run nothing");
  auto* slurm = app.add_flag("--slurm", o->slurm, "write a Slurm job for each size, and one for the report");
  app.add_flag("--submit", o->submit, "with --slurm: submit them")->needs(slurm);
  app.add_option("--jobs", o->jobs, "with --slurm: an array of N jobs for each size, which share its cells")
      ->check(CLI::Range(1, 10000))
      ->needs(slurm);
  auto* network = app.add_flag("--network", o->network, "measure the network first; run nothing over blocked links");
  network->excludes(list)->excludes(report)->excludes(slurm);
  list->excludes(report)->excludes(slurm);
  report->excludes(slurm);
  return [o] { return run_scale(*o); };
}

Run declare_sweep_batch(CLI::App& app) {
  auto o = held<SweepBatchOptions>();
  app.add_option("config", o->config, "the experiment, TOML")->required();
  add_sets(app, o->sets);
  app.add_option("--sizes", o->sizes, "global batch sizes in increasing order; default: batch.global times 1, 2 and 4")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--scaling", o->scalings,
                 "rules that take the learning rate from batch.global to each size: none, linear, sqrt; default: the "
                 "config's")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("RULE,..");
  app.add_option("--target", o->target, "target test accuracy; default: [goal], else 0.9");
  app.add_option("--out", o->out, "also write the table here, as markdown");
  return [o] { return run_sweep_batch(*o); };
}

Run declare_info(CLI::App& app) {
  auto o = held<InfoOptions>();
  app.add_flag("--measure", o->measure, "measure the rate of f32 matrix products on one thread");
  app.add_flag("--strategies", o->strategies,
               "print only the forms of all strategies that tests run, one JSON object a line: name, strategy, family "
               "(folder in src/exchange/), sets, by_timing, equals_one");
  return [o] { return run_info(*o); };
}

Run declare_verify(CLI::App& app) {
  auto o = held<VerifyOptions>();
  app.add_flag("--quick", o->quick, "fewer sizes, steps and cases: about 20 s on 2 ranks");
  app.add_option("--dir", o->dir, "folder on the file system to test, which all hosts share")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--junit", o->junit, "write the results here, as JUnit XML")->type_name("FILE");
  app.add_option(
         "--fault", o->fault,
         "inject a message fault to check that it is detected: \"corrupt message of rank 1 at step 3\"; a step is a "
         "check")
      ->type_name("SENTENCE");
  return [o] { return run_verify(*o); };
}

Run declare_check(CLI::App& app) {
  auto o = held<CheckOptions>();
  app.add_option("config", o->config, "the experiment, a TOML file")->type_name("CONFIG");
  add_sets(app, o->sets);
  app.add_option("--replicas", o->replicas,
                 "number of replicas to plan for: ranks, or groups of ranks that hold one model together; "
                 "exchange.server.ranks are added. Default: 1");
  app.add_option("--ranks", o->ranks, "number of processes to plan for, as started by mpirun -n or srun -n");
  app.add_option("--hosts", o->hosts, "number of hosts to plan for")->capture_default_str();
  app.add_flag("--effective", o->effective, "print the effective config instead, every default included");
  app.add_flag("--keys", o->keys, "print every key with its default, range and meaning");
  app.add_flag(
      "--combinations", o->combinations,
      "print which choices can be combined: strategies, all-reduces, codecs, rules, splits .., with the reasons");
  return [o] { return run_check(*o); };
}

// Options that import and synth share.
template <class Options>
void add_shards(CLI::App& app, Options& o) {
  app.add_option("--out", o.out, "folder to write; must be new or empty")->required();
  app.add_option("--prefix", o.prefix, "files are PREFIX-0000.h5, ...")->capture_default_str();
  app.add_option("--shards", o.shards, "number of files")->capture_default_str();
  app.add_option("--unequal", o.unequal, "relative sizes of the files, e.g. 3,1,2")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--chunk", o.chunk, "records stored and read together, 64 to 256")->capture_default_str();
  app.add_option("--slab-rows", o.slab_rows, "rows of images, or slices of volumes, in a chunk; 0: all")
      ->capture_default_str();
  app.add_option("--compress", o.compress, "gzip level, 0 to 9")->capture_default_str();
  app.add_flag("--no-checksums", o.no_checksums, "store chunks without checksums (Fletcher32)");
  app.add_flag("--verify", o.verify, "read files back from the disk after writing and verify checksums");
  app.add_option("--stored", o.stored,
                 "csv: type of the values, u8 or f32; images, tar: u8 or encoded, the files as they are")
      ->capture_default_str();
  app.add_option("--shape", o.shape, "shape of a sample: C,H,W; of fields also C,W and C,D,H,W")
      ->delimiter(',')
      ->allow_extra_args(false);
}

Run declare_data_import(CLI::App& app) {
  auto o = held<ImportOptions>();
  app.add_option("format", o->format,
                 "idx, cifar10, cifar100, csv, hdf5, npy, images, tar, text, words, sequences or pairs")
      ->required();
  app.add_option("inputs", o->inputs,
                 "idx: images and labels; cifar: batch files; csv: one file; hdf5: an experiment with [data.hdf5]; "
                 "npy: samples and labels, each FILE.npy or FILE.npz:NAME; "
                 "images: a folder of "
                 "<class>/<name>.jpg, .jpeg, .png; tar: archives of <key>.jpg, .jpeg, .png with <key>.cls or .txt, as "
                 "WebDataset writes them, compressed too, or zips; text and words: files that follow each other; "
                 "sequences: a .ts file, a .csv "
                 "file with one step a line, or a folder with one <class>.txt a "
                 "class and one sequence a line; pairs: a file of source<TAB>target lines; also gzipped")
      ->required();
  add_shards(app, *o);
  app.add_flag("--keep-order", o->keep_order,
               "write samples in the order of the input; else those that are not held out are mixed, in two passes");
  app.add_option("--samples-per-shard", o->samples_per_shard, "instead of --shards; default 10000");
  app.add_option("--label-column", o->label_column, "csv: column of the class, counted from 0; -1: the last")
      ->capture_default_str();
  app.add_option("--targets", o->targets,
                 "csv: number of columns at the end that are regression targets, instead of a class");
  app.add_option("--value-max", o->value_max, "the u8 value that stands for 1.0")->capture_default_str();
  app.add_option(
      "--hold-out", o->hold_out,
      "number of evenly spaced samples (of a text: of last tokens) that go to OUT/test; the others go to OUT/train");
  app.add_option("--hold-out-part", o->hold_out_part, "the same as a fraction of all samples, e.g. 0.1");
  app.add_option(
      "--tokens", o->tokens,
      "text, words, sequences, pairs: characters, bytes, words, or verbatim (what stands between white space, a line "
      "end each line)");
  app.add_option("--vocabulary", o->vocabulary,
                 "words: largest size of the vocabulary, other words become <unk>; default 10000, of verbatim all");
  app.add_option("--like", o->like,
                 "a data set whose vocabulary, classes, mean and std are used again (not idx, cifar)");
  app.add_option("--axes", o->axes, "npy: what each axis of the samples is, N first: NHWC; default NC, NHW or NCHW");
  app.add_option("--size", o->size,
                 "images, tar: H or HxW; each image is scaled until it just covers that, and its middle cut out; "
                 "default: all must have one size");
  app.add_option("--channels", o->channels, "images, tar: 1 (grey) or 3")->capture_default_str();
  app.add_flag("--skip-damaged", o->skip_damaged,
               "images, tar: leave out and list what is damaged or has no label; else that is an error");
  app.add_flag("--labels-as-they-are", o->labels_as_they_are,
               "do not refuse classes named like train and val, and labels like numbers of samples");
  app.add_flag("--step-labels", o->step_labels, "sequences: the label in each line of a .csv file is that of the step");
  app.add_option("--heading", o->heading,
                 "csv: whether line 1 is a heading: yes, no, auto (yes where no value in it is a number)");
  return [o, &app] {
    for (const CLI::Option* option : app.get_options([](const CLI::Option* any) { return any->count() > 0; }))
      if (!option->get_lnames().empty()) o->given.push_back("--" + option->get_lnames().front());
    return run_data_import(*o);
  };
}

Run declare_data_synth(CLI::App& app) {
  auto o = held<SynthOptions>();
  add_shards(app, *o);
  app.add_option("--samples", o->samples, "how many")->capture_default_str();
  app.add_option("--classes", o->classes, "how many")->capture_default_str();
  app.add_option("--noise", o->noise, "standard deviation of the noise around a class's pattern")
      ->capture_default_str();
  app.add_option("--seed", o->seed, "seed of all draws")->capture_default_str();
  app.add_option("--hold-out", o->hold_out,
                 "number of evenly spaced samples that go to OUT/test, the others to OUT/train");
  app.add_option(
         "--kind", o->kind,
         "patterns: one per class, with noise; fields: Gaussian random fields with the index and amplitude of "
         "their spectrum; numbers: texts of 1 to 6 digits and their English words; shots: series of 14 signals with a "
         "class for each step")
      ->capture_default_str();
  return [o, &app] {
    for (const char* name : {"--classes", "--noise", "--stored", "--shape"})
      if (app.get_option(name)->count() > 0) o->given.emplace_back(name);
    return run_data_synth(*o);
  };
}

Run declare_data_inspect(CLI::App& app) {
  auto o = held<InspectOptions>();
  app.add_option("location", o->location, "folder, file or pattern of shards")->required();
  app.add_option("--replicas", o->replicas, "number of replicas to distribute the samples over")->capture_default_str();
  app.add_option("--sharding", o->sharding, "auto, file, record or replicated")->capture_default_str();
  app.add_option("--batch", o->batch, "samples per step over all replicas")->capture_default_str();
  app.add_flag("--verify", o->verify,
               "read every byte of every data set and name the damaged rows; under mpirun the ranks share the files");
  return [o] { return run_data_inspect(*o); };
}

constexpr Verb kVerbs[] = {
    {"train", "train the model of a config; the same command, given again, resumes the run",
     "  echelon train configs/smoke/digits.toml\n"
     "  mpirun -n 2 --bind-to none echelon train configs/smoke/digits.toml --set train.epochs=3\n"
     "  srun --mpi=pmix -n 8 echelon train experiment.toml",
     declare_train, true},
    {"supervise", "watch over a launcher and its run: end it if it hangs, start it again after lost ranks or hosts",
     "  echelon supervise -- mpirun -n 4 --bind-to none echelon train experiment.toml\n"
     "  echelon supervise --hosts n1,n2,n3 --min-hosts 2 --restarts 9 -- mpirun -H {slots} -n {ranks} echelon train "
     "e.toml",
     declare_supervise, true, "run"},
    {"check", "read an experiment and print its plan: ranks, shards, batch, model, memory, exchange",
     "  echelon check configs/smoke/digits.toml --replicas 4 --set batch.global=96\n"
     "  echelon check experiment.toml --ranks 8 --hosts 2\n"
     "  echelon check --keys\n"
     "  echelon check --combinations",
     declare_check},
    {"scale", "run a study: one experiment on several numbers of ranks, strategies, settings; then the report",
     "  mpirun -n 8 --bind-to none echelon scale configs/scaling/study_digits.toml\n"
     "  srun --mpi=pmix -n 8 echelon scale study.toml --ranks 1,2\n"
     "  echelon scale study.toml --list\n"
     "  echelon scale study.toml --slurm --submit\n"
     "  echelon scale search.toml --slurm --jobs 8 --submit",
     declare_scale, true},
    {"sweep batch", "train at several batch sizes: samples and seconds until a target is reached",
     "  echelon sweep batch configs/smoke/digits.toml --sizes 24,96,384 --target 0.97\n"
     "  mpirun -n 2 --bind-to none echelon sweep batch experiment.toml --scaling linear,sqrt",
     declare_sweep_batch, true},
    {"sweep micro", "find the largest micro-batch of a rank that fits into its memory, without training",
     "  echelon sweep micro configs/smoke/digits.toml --memory 64MiB\n"
     "  echelon sweep micro experiment.toml --ranks 8 --memory 40GB",
     declare_sweep_micro},
    {"predict", "run a trained model over a data set and write its predictions; write text; translate",
     "  echelon predict results/digits data/digits/test --out predictions.h5 --outputs\n"
     "  echelon predict results/shakespeare --generate 500 --prompt 'ROMEO:' --temperature 0.8\n"
     "  echelon predict results/numbers --beam 4 --prompt 407",
     declare_predict},
    {"eval",
     "loss and accuracy of a trained model on a data set, of translations BLEU; also with 8-bit weights; sharpness",
     "  echelon eval results/digits data/digits/test --sharpness 1e-3\n"
     "  echelon eval results/digits data/digits/test --weights int8\n"
     "  mpirun -n 2 --bind-to none echelon eval results/digits data/digits/test\n"
     "  echelon eval results/digits --follow",
     declare_eval},
    {"export", "write a trained model's weights as safetensors, or the whole model as ONNX",
     "  echelon export results/digits --out digits.safetensors\n"
     "  echelon export results/digits --format onnx --out digits.onnx",
     declare_export},
    {"plan", "predict step time, efficiency and cost for replicas that are not there",
     "  echelon plan configs/bench/resnet50.toml --step samples=64,forward_ms=60,backward_ms=120,jitter=0.03 \\\n"
     "    --network 25gbit,ranks_per_host=4,inside=nvlink --replicas 8..10000\n"
     "  echelon plan run.toml --from results/lenet-1 --from results/lenet-4 --network 1gbit --replicas 2,4,8",
     declare_plan},
    {"report", "turn runs into strong and weak scaling tables",
     "  echelon report results/digits\n"
     "  echelon report results/lenet-1 results/lenet-2 --out results --name lenet\n"
     "  echelon report results/digits/study.json --out again     the verdict of a study from its record alone\n"
     "  echelon report results/digits --tensorboard events",
     declare_report},
    {"compare", "check runs of a new build against those of an old one; code 8 where a figure got worse",
     "  echelon compare base/results results --tolerance 0.05 --junit compare.xml\n"
     "  echelon compare results/digits/run-1450d256171e5f2a/01 results/digits/run-1450d256171e5f2a/02\n"
     "  echelon compare base/results results --only counts,memory --allow device_text\n"
     "  echelon compare results/one results/four --weights --tolerance 1e-4",
     declare_compare},
    {"completion", "print a script that completes command lines in bash", "  source <(echelon completion bash)",
     declare_completion},
    {"manual", "print the manual page of this build in roff", "  echelon manual | man -l -", declare_manual},
    {"info", "version, devices, libraries and cores of this machine", "  echelon info", declare_info},
    {"verify",
     "test on this machine, build, launch and file system that the program keeps its promises; code 8 where one fails",
     "  mpirun -n 2 --bind-to none echelon verify --quick\n"
     "  srun --mpi=pmix -N 2 --ntasks-per-node=4 echelon verify --dir /scratch/me --junit verify.xml",
     declare_verify, true},
    {"data import", "turn IDX, CIFAR, CSV, images, text, time series or pairs of texts into HDF5 shards",
     "  echelon data import idx images.gz labels.gz --out mydata/train\n"
     "  echelon data import csv table.csv.gz --shape 1,8,8 --value-max 16 --hold-out 297 --out mydata\n"
     "  mpirun -n 8 echelon data import images photos/ --size 224 --hold-out-part 0.1 --out mydata\n"
     "  mpirun -n 8 echelon data import hdf5 experiment.toml --out mydata/train\n"
     "  echelon data import tar part-*.tar --size 32x48 --skip-damaged --out mydata/train\n"
     "  echelon data import text book.txt --hold-out-part 0.1 --out mydata\n"
     "  echelon data import sequences speakers.ts --out mydata/train\n"
     "  echelon data import pairs english-french.tsv --vocabulary 8000 --hold-out-part 0.05 --out mydata",
     declare_data_import},
    {"data synth", "create synthetic shards: one pattern per class plus noise, or numbers and their words",
     "  echelon data synth --samples 100000 --shape 3,32,32 --classes 10 --out made/train\n"
     "  echelon data synth --kind numbers --samples 20000 --hold-out 1000 --out data/numbers",
     declare_data_synth},
    {"data inspect", "describe a folder of shards and its distribution over replicas",
     "  echelon data inspect data/digits/train --replicas 4", declare_data_inspect},
    {"bench step", "time of a training step on resident random data, by layer and op",
     "  echelon bench step configs/bench/lenet.toml --ops", declare_bench_step},
    {"bench update", "time of an optimiser update of all parameters of a model, for each rule",
     "  echelon bench update configs/bench/resnet20.toml --set model.zoo=resnet50", declare_bench_update},
    {"bench allreduce", "verify and time the all-reduce algorithms between the ranks of this launch",
     "  mpirun -n 4 --bind-to none echelon bench allreduce --algorithms ring,halving_doubling,mpi --rate 1gbit\n"
     "  srun --mpi=pmix -n 8 echelon bench allreduce --sizes 1KiB..64MiB --json",
     declare_bench_allreduce},
    {"bench network", "latency and bandwidth of all pairs of ranks, each way; names slow and blocked links and hosts",
     "  mpirun -n 8 --map-by node --bind-to none echelon bench network --out network.json --figure network.svg\n"
     "  srun --mpi=pmix --ntasks-per-node=1 echelon bench network --limit 30",
     declare_bench_network},
    {"bench data", "how fast training data are read, decoded and changed, and with how much memory",
     "  echelon bench data experiment.toml --readers 4", declare_bench_data},
    {"bench codec", "encoding rate, decoding rate and compressed size of each gradient codec",
     "  echelon bench codec --mb 64 --density 0.003", declare_bench_codec},
    {"bench control", "what control messages, agreement and plans cost one rank of k, without starting k ranks",
     "  echelon bench control configs/bench/resnet50.toml --ranks 512,4096", declare_bench_control},
};

}  // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

}  // namespace echelon::cli
