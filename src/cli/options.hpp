// SPDX-License-Identifier: Apache-2.0
// The verbs and their options. args.cpp and the other args*.cpp, the only files with CLI11, fill these structs; one
// file per verb runs them. A verb prints its result on standard output and returns an exit code or throws Error. The
// defaults here are those of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::cli {

struct TrainOptions {  // echelon train CONFIG [--set section.key=value]... [--local-ranks K]
  std::string config;
  std::vector<std::string> sets;
  int local_ranks = 0;  // ranks as threads of this process; 0: one rank, or those of mpirun or srun
};
int run_train(const TrainOptions& options);

struct SuperviseOptions {            // echelon supervise [--hosts H,..] -- COMMAND...
  std::vector<std::string> command;  // {hosts} a,b  {slots} a:2,b:2  {nodes} 2  {ranks} 4
  std::vector<std::string> hosts;    // hosts that the run may use; none: the command is used unchanged
  int per_host = 1;                  // ranks per host
  int min_hosts = 0;                 // 0: one
  std::string probe = "ssh -o BatchMode=yes -o ConnectTimeout=5 {host} true";  // exits with 0 if the host answers
  int restarts = 0;                                                            // after exit 7
  double grace_s = 10;  // time for a launcher to return once its run has ended
  double look_s = 30;   // interval of checks for lost hosts
};
int run_supervised(const SuperviseOptions& options);

struct CheckOptions {  // echelon check CONFIG [--set ..] [--replicas K | --ranks N] [--hosts N] [--effective]
                       // | check --keys | check --combinations
  std::string config;
  std::vector<std::string> sets;
  int replicas = 0;  // 0: one, or as many as fit on `ranks`
  int ranks = 0;     // all processes of a launch; 0: as many as the replicas need
  int hosts = 1;
  bool effective = false;     // print the effective config instead of the plan
  bool keys = false;          // print every key with default, range and help
  bool combinations = false;  // print the matrix of choices that can be combined
};
int run_check(const CheckOptions& options);

struct ScaleOptions {  // mpirun -n K echelon scale STUDY [--set ..] [--ranks 1,2] [--list | --report | --slurm ..]
  std::string study;
  std::vector<std::string> sets;
  std::vector<std::int64_t> ranks;  // sizes to run; empty: all of the study
  bool list = false;                // print the cells and their outcome
  bool report = false;              // write the pages of the results so far
  bool slurm = false;               // write job scripts
  int jobs = 1;                     // jobs per size, which share its cells
  bool submit = false;              // and submit them
  bool network = false;             // measure the network first, like study.network = true
};
int run_scale(const ScaleOptions& options);

// echelon sweep batch CONFIG [--sizes 32,64,128] [--scaling linear,sqrt] [--target 0.97] [--out FILE.md]
struct SweepBatchOptions {
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::int64_t> sizes;    // empty: the config's batch, twice and four times that
  std::vector<std::string> scalings;  // rules for the learning rate; empty: the config's
  double target = 0;                  // test accuracy; 0: [goal]
  std::string out;                    // "": only printed
};
int run_sweep_batch(const SweepBatchOptions& options);

struct SweepMicroOptions {  // echelon sweep micro CONFIG [--ranks K] [--memory 8GB]
  CheckOptions launch;
  std::string memory;  // memory of a rank; "": device.memory_limit_mb, or this machine's memory
};
int run_sweep_micro(const SweepMicroOptions& options);

// echelon predict MODEL DATA --out FILE | --generate N | --beam B; echelon eval MODEL DATA
struct PredictOptions {
  std::string model;     // folder of a run, or a checkpoint
  std::string data;      // folder, file or pattern of shards; "": the run's data.test, or for a vocabulary data.train
  std::string out;       // predict: HDF5 file to write, or for text a copy
  bool outputs = false;  // predict: also write the probabilities of all classes
  std::vector<std::string> layers{};  // predict: also write the outputs of these layers
  std::int64_t overlays = -1;  // predict: pictures of the first samples (cli/predict_overlays.hpp); -1: a few, if any
  std::int64_t batch = 256;
  std::string device;                    // "": the config's
  int threads = 0;                       // 0: all cores
  std::string weights = "trained";       // | int8 (checkpoint/quantise.hpp); eval: in addition to the trained ones
  std::string classes{};                 // eval: CSV file to write with figures by class; "": none
  double sharpness = 0;                  // eval: epsilon of the box; 0: not measured
  bool follow = false;                   // eval: the checkpoints of a run in another job (cli/follow.hpp)
  double every_s = 2, patience_s = 600;  // eval --follow
  std::int64_t generate = 0;             // predict: number of tokens to write after the prompt
  std::string prompt{}, prompt_file{};   // predict: text for --generate, one source per line for --beam
  double temperature = 1;                // --generate, as are the next two (inference/sampler.hpp)
  std::int64_t top_k = 0;
  std::uint64_t seed = 1;
  std::int64_t beam = 0;        // predict: translate with this many beams; eval: the beams for BLEU, 0: 1
  double length_penalty = 1;    // for beams (inference/beam.hpp)
  std::int64_t max_length = 0;  // tokens of a translation; 0: the longest target of the data
};
int run_predict(const PredictOptions& options);
int run_eval(const PredictOptions& options);

struct ExportOptions {  // echelon export MODEL [--format onnx] [--weights int8] [--out FILE]
  std::string model;
  std::string format = "safetensors";  // | onnx
  std::string weights = "trained";     // | int8
  std::string out;                     // "": step-NNNNNNNN.safetensors or .onnx here
};
int run_export(const ExportOptions& options);

struct ReportOptions {  // echelon report RUN... [--out FOLDER] [--name NAME] | --figures | RUN... --tensorboard FOLDER
  std::vector<std::string> runs;
  bool figures = false;  // list the recorded figures and how they are combined
  std::string out = "results";
  std::string name = "scaling";
  std::string tensorboard{}, mllog{};  // convert the records into files of these folders instead
  std::string claims{};                // instead: judge the claim records in this folder
};
int run_report(const ReportOptions& options);

struct CompareOptions {  // echelon compare BASE NEW [--tolerance [GROUP=]PART].. [--only GROUP,..] [--allow KEY].. ..
  std::string base, fresh;
  std::vector<std::string> tolerances, only, allowed;
  double significance = 0.01;
  std::string junit;     // also write JUnit XML to this file
  bool json = false;     // instead of the tables
  bool weights = false;  // instead of figures: compare_weights
};
int run_compare(const CompareOptions& options);

struct PlanOptions {  // echelon plan CONFIG --from RUN.. | --step TEXT|FILE  --network TEXT|FILE --replicas 8..10000
  std::string config;
  std::vector<std::string> sets;
  std::vector<std::string> from;  // folders of runs that give the step and points to compare with
  std::string step;               // a step described in text, instead of a measured one
  std::string network;            // "": the config's [network], else 10gbit
  std::string replicas = "8..10000";
  std::string scaling = "weak";  // weak: each replica keeps its batch | strong: the global batch is kept
  std::vector<std::string> compare = {"strategies", "algorithms", "codecs"};
  std::optional<double> node_hour;  // price of one host-hour, in cost.currency; default: cost.node_hour
  std::string out;                  // folder of NAME.md, NAME.csv, NAME.json, NAME.svg; "": only printed
  std::string name = "plan";
};
int run_plan(const PlanOptions& options);

struct ImportOptions {  // echelon data import FORMAT INPUT... --out FOLDER
  std::string format;   // idx | cifar10 | cifar100 | csv | hdf5 | npy | images | tar | text | words | sequences | pairs
  std::vector<std::string> inputs;  // idx: images, labels; cifar: batch files; text: files in sequence; else one
  std::string out;
  std::string prefix = "shard";
  std::int64_t shards = 0;             // 0: derived from samples_per_shard
  std::int64_t samples_per_shard = 0;  // 0: 10,000 if shards is 0 too
  std::vector<std::int64_t> unequal;   // relative size of each shard, e.g. 3,1,2: shards of unequal size
  std::int64_t chunk = 128;            // records per chunk, 64 to 256
  std::int64_t slab_rows = 0;
  int compress = 0;                  // gzip level, 0 to 9
  bool no_checksums = false;         // omit the Fletcher32 checksum of each chunk
  bool keep_order = false;           // keep the input's order; else training samples are shuffled
  bool verify = false;               // read back the written files
  std::vector<std::int64_t> shape;   // csv: C,H,W of a sample
  int label_column = -1;             // csv: counted from 0; -1: the last
  std::int64_t targets = 0;          // csv: this many last columns are regression targets, not a class
  std::string stored = "u8";         // csv: u8 | f32
  double value_max = 255;            // u8 data: the value that stands for 1.0 (scale = 1/value_max)
  std::int64_t hold_out = 0;         // this many, evenly spread, go to <out>/test, the rest to <out>/train
  double hold_out_part = 0;          // the same as a fraction of all samples
  std::string tokens;                // characters | bytes | words | verbatim
  std::int64_t vocabulary = 0;       // words: vocabulary size; 0: 10,000
  std::string like;                  // shards whose vocabulary, classes and scaling are reused
  std::string heading = "auto";      // csv, sequences: auto | yes | no
  std::string axes;                  // npy: "NHWC"; "": by the number of axes
  std::string size;                  // images, tar: "H" or "HxW"; "": the size of the images
  int channels = 3;                  // images, tar: 1 or 3
  bool skip_damaged = false;         // images, tar: leave out unusable inputs
  bool labels_as_they_are = false;   // accept labels and names that do not look like classes
  bool step_labels = false;          // sequences: a label for each step
  std::vector<std::string> given{};  // options given on the command line: "--shape"
};
int run_data_import(const ImportOptions& options);
int run_image_import(const ImportOptions& options);  // images | tar
int run_hdf5_import(const ImportOptions& options);

struct SynthOptions {  // echelon data synth --out FOLDER --samples N --shape C,H,W --classes K
  std::string out;
  std::string prefix = "shard";
  std::int64_t samples = 1024;
  std::vector<std::int64_t> shape = {1, 28, 28};
  std::int64_t classes = 10;
  std::int64_t shards = 4;
  std::vector<std::int64_t> unequal;
  std::int64_t chunk = 128;
  std::int64_t slab_rows = 0;
  int compress = 0;
  bool no_checksums = false;
  bool verify = false;
  std::string stored = "u8";
  double noise = 0.3;  // noise added to each sample's class pattern
  std::uint64_t seed = 1;
  std::int64_t hold_out = 0;       // as for an import
  std::string kind = "patterns";   // patterns | fields | numbers | shots
  std::vector<std::string> given;  // options of some kinds that were given
};
int run_data_synth(const SynthOptions& options);

struct InspectOptions {  // echelon data inspect LOCATION [--verify | --replicas K --sharding MODE --batch B]
  std::string location;
  int replicas = 2;
  std::string sharding = "auto";
  std::int64_t batch = 64;  // global batch
  bool verify = false;      // read every byte
};
int run_data_inspect(const InspectOptions& options);
int run_data_verify(const std::string& location);

struct BenchStepOptions {  // echelon bench step CONFIG [--steps N] [--batch B] [--threads T] [--shape ..] [--ops] ..
  std::string config;
  std::vector<std::string> sets;
  int steps = 0;           // 0: 50 steps, or as many as fit in 20 s
  std::int64_t batch = 0;  // 0: the config's per-replica batch on one replica
  int threads = 1;
  std::vector<std::int64_t> shape;  // of a sample for model.zoo, instead of the shape of the data; empty: that one
  bool ops = false;                 // print every op with its implementation, time and rate
  std::string table;                // write measured op times for the paced device
  bool json = false;                // one JSON line instead of the report
};
int run_bench_step(const BenchStepOptions& options);

struct BenchUpdateOptions {  // echelon bench update CONFIG [--rounds N] [--threads T] [--set ..]
  std::string config;
  std::vector<std::string> sets;
  int rounds = 50;
  int threads = 1;
  bool json = false;  // {"sgd_s": .., "adam_s": ..} instead of the tables
};
int run_bench_update(const BenchUpdateOptions& options);

struct BenchAllreduceOptions {  // mpirun -n K echelon bench allreduce [--algorithms A,B] [--sizes 4KiB..32MiB] ..
  std::vector<std::string> algorithms = {"all"};
  std::string sizes = "4KiB..32MiB";  // buffer sizes: a range that doubles, or a list
  double segment_kb = 256;
  std::int64_t servers = 0;
  std::string inner = "ring", outer = "ring";  // hierarchical
  int iterations = 20;
  int warmup = 3;
  std::string dtype = "f32";
  std::string rate;       // rate of a rank's link, "1gbit": adds a column with the lower bound of the time; "": none
  NetworkConfig network;  // messages are slowed to this network: --shaped, --delay-us, --ranks-per-host
  bool json = false;      // one line of JSON per row instead of the table
};
int run_bench_allreduce(const BenchAllreduceOptions& options);
// Parses options given as words ("--sizes", "1MiB", "--dtype=f64"). Throws ConfigError for an option the verb lacks.
BenchAllreduceOptions parse_bench_allreduce(const std::vector<std::string>& words);

struct BenchNetworkOptions {  // mpirun -n K echelon bench network [--out FILE.json] [--figure FILE.svg] [--json] ..
  std::string out, figure;
  double seconds = 0.05, limit_s = 10;  // length of a bandwidth message; limit of a wait
  NetworkConfig network;                // as for bench allreduce
  bool json = false;                    // print what --out writes instead of the tables
};
int run_bench_network(const BenchNetworkOptions& options);

struct BenchDataOptions {  // echelon bench data CONFIG [--readers N] [--batch B] [--seconds S] [--out FILE] ..
  std::string config;
  std::vector<std::string> sets;
  int readers = 1;
  std::int64_t batch = 0;  // of a reader; 0: 64, fewer where samples are large
  double seconds = 10;
  std::int64_t epochs = 1;
  std::string out;  // HDF5 file to which the first batch is written; "": none
  bool json = false;
};
int run_bench_data(const BenchDataOptions& options);

struct BenchCodecOptions {  // echelon bench codec [--mb M] [--rounds N] [--density D] [--tau T]
  double mb = 16;           // size of the values
  int rounds = 20;
  double density = 0.01;
  double tau = 0;
};
int run_bench_codec(const BenchCodecOptions& options);

struct BenchControlOptions {  // echelon bench control [CONFIG] [--ranks K,K] [--rounds N] [--mb M] [--markdown]
  std::string config;         // the config whose buckets are planned too; "": none
  std::vector<std::string> sets;
  std::vector<int> ranks = {64, 512, 4096};
  int rounds = 9;
  double mb = 4;  // size of the bucket whose plans are built
  bool markdown = false;
};
int run_bench_control(const BenchControlOptions& options);

struct VerifyOptions {  // echelon verify [--quick] [--dir DIR] [--junit FILE] [--fault SENTENCE]
  bool quick = false;
  std::string dir = "results";  // parent of the folder that verify makes for itself
  std::string junit;
  std::string fault;  // fault to inject into the messages of the checks (config/faults.hpp)
};
int run_verify(const VerifyOptions& options);

struct InfoOptions {  // echelon info [--measure] [--strategies]: version, devices, libraries, threads, MPI
  bool measure = false;
  bool strategies = false;  // prints only strategy_cases(), one JSON object a line
};
int run_info(const InfoOptions& options);

// Parses the command line and runs the verb, including help and version. Returns the exit code. Throws Error:
// ConfigError for usage errors, EnvironmentError if standard output cannot be written.
int main_of_cli(int argc, char** argv);

}  // namespace echelon::cli
