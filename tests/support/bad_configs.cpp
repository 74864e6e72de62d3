// SPDX-License-Identifier: Apache-2.0
#include "tests/support/bad_configs.hpp"

#include <stdexcept>

namespace echelon::test {
namespace {

// Returns good_config() with `from` replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = good_config();
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the good config has no '" + from + "'");
  return text.replace(at, from.size(), to);
}

std::string plus(const std::string& more) { return good_config() + more; }

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string layers(const std::string& list) { return "[data]\ntrain = \"none\"\n" + list; }

}  // namespace

const std::string& good_config() {
  static const std::string text =
      "name = \"try\"\n"             // 1
      "seed = 3\n"                   // 2
      "\n"                           // 3
      "[model]\n"                    // 4
      "zoo = \"lenet\"\n"            // 5
      "\n"                           // 6
      "[data]\n"                     // 7
      "train = \"nowhere/train\"\n"  // 8
      "sharding = \"auto\"\n"        // 9
      "\n"                           // 10
      "[batch]\n"                    // 11
      "global = 64\n"                // 12
      "\n"                           // 13
      "[train]\n"                    // 14
      "epochs = 2\n"                 // 15
      "\n"                           // 16
      "[optimizer]\n"                // 17
      "learning_rate = 0.05\n"       // 18
      "momentum = 0.9\n";            // 19
  return text;
}

const std::vector<BadConfig>& bad_configs() {
  static const std::vector<BadConfig> all = {
      // The file as TOML
      {"empty file", "", {"@1:1", "holds no keys", "[model]"}},
      {"only comments", "# nothing yet\n\n", {"@1:1", "holds no keys"}},
      {"open string", with("\"lenet\"", "\"lenet"), {"@5:", "not valid TOML"}},
      {"no value", with("global = 64", "global ="), {"@12:", "not valid TOML"}},
      {"word without quotes", with("\"lenet\"", "lenet"), {"@5:", "not valid TOML"}},
      {"open heading", with("[batch]", "[batch"), {"@11:", "not valid TOML"}},
      {"no text at all", std::string("\x01\x02\xff\xfe", 4), {"@1:", "not valid TOML"}},
      {"tables nested by their heading", plus("[a" + repeated(".a", 30000) + "]\n"), {"@20:129", "more than 64 deep"}},
      {"dotted keys", plus("a" + repeated(".a", 30000) + " = 1\n"), {"@20:128", "more than 64 deep"}},
      {"tables in tables", plus("a = " + repeated("{ a = ", 5000)), {"@20:", "more than 64 deep"}},
      {"lists in lists", plus("a = " + repeated("[", 100000)), {"@20:69", "more than 64 deep"}},
      {"depth behind strings and comments",
       plus("a = \"\"\"[\n\"\"[\\\"\"\"\" # [\nb = '[\\' # '\nc = " + repeated("[\n", 65)),
       {"@87:1", "more than 64 deep"}},
      {"results in the root", good_config(), {"run.results", "must not be empty"}, {"run.results=\"\""}},
      {"a line's end in a path", good_config(), {"run.results", "control character"}, {"run.results=a\nb"}},
      {"text that no file could hold", good_config(), {"data.test", "not UTF-8"}, {"data.test=caf\xe9"}},
      {"key twice", with("global = 64", "global = 64\nglobal = 32"), {"@13:", "set twice", "global"}},
      {"section twice", plus("[batch]\n"), {"@20:", "set twice", "batch"}},
      {"synchronised batch norm over micro-batches",
       "[model]\nzoo = \"resnet20\"\nsynchronised_batch_norm = true\n[data]\ntrain = \"x\"\n[batch]\nglobal = "
       "64\naccumulation = 2\n",
       {"@8:", "all samples of a step at once", "leave batch.accumulation out"}},
      {"streams of files",
       with("sharding = \"auto\"", "sharding = \"file\"\norder = \"stream\""),
       {"@9:", "data.order = \"stream\"", "nearest valid: \"auto\" or \"record\""}},
      {"buckets of streams",
       with("sharding = \"auto\"", "buckets = 4\norder = \"stream\""),
       {"@9:", "windows of a stream are equally long"}},
      {"buckets of chunks of time",
       with("sharding = \"auto\"", "buckets = 4"),
       {"@9:", "data.buckets cannot be combined with parallel.time_chunks"},
       {"parallel.time_chunks=2"}},
      {"falling buckets", with("sharding = \"auto\"", "buckets = [8, 4]"), {"@9:", "must increase", "4 comes after 8"}},
      // Names
      {"unknown section", with("[batch]", "[btach]"), {"@11:2", "unknown section 'btach'", "did you mean 'batch'"}},
      {"British section", with("[optimizer]", "[optimiser]"), {"@17:2", "did you mean 'optimizer'"}},
      {"unknown key", with("global", "globl"), {"@12:1", "unknown key 'globl' in [batch]", "did you mean 'global'"}},
      {"unknown key at the top", "sede = 3\n" + good_config(), {"@1:1", "unknown key 'sede'", "did you mean 'seed'"}},
      {"key of another section",
       with("epochs = 2", "epochs = 2\nmomentum = 0.5"),
       {"@16:1", "unknown key 'momentum' in [train]", "it belongs to [optimizer]"}},
      {"section as a value",
       "batch = 64\n" + with("[batch]\nglobal = 64\n", ""),
       {"@1:1", "'batch' is a section", "[batch]"}},
      {"section as a list", with("[batch]", "[[batch]]"), {"@11:3", "'batch' is a section", "once"}},
      {"key as a table",
       with("[batch]\nglobal = 64", "[batch.global]\nx = 64"),
       {"@11:", "batch.global", "a table", "whole number"}},
      // Types
      {"text for a number", with("64", "\"64\""), {"@12:10", "whole number", "write batch.global = 64 without quotes"}},
      {"fraction for a whole number", with("64", "63.7"), {"@12:10", "whole number", "nearest valid: 64"}},
      {"number for text", with("\"lenet\"", "5"), {"@5:7", "model.zoo = 5", "text in quotes", "\"5\""}},
      {"number for true or false", with("sharding = \"auto\"", "shuffle = 1"), {"@9:11", "true or false"}},
      {"text for true or false",
       with("sharding = \"auto\"", "shuffle = \"true\""),
       {"@9:11", "data.shuffle = true without quotes"}},
      {"date for a number", with("epochs = 2", "epochs = 2024-01-01"), {"@15:10", "whole number", "a date"}},
      {"list for a number", with("64", "[64]"), {"@12:10", "a list", "whole number"}},
      {"infinite", with("0.05", "inf"), {"@18:17", "finite"}},
      {"not a number", with("0.05", "nan"), {"@18:17", "finite"}},
      // Ranges and words
      {"batch of everything by file", with("64", "0"), {"@12:1", "batch.global = 0 (all samples", "\"record\""}},
      {"negative batch", with("64", "-8"), {"@12:10", "nearest valid: 0"}},
      {"negative seed", with("seed = 3", "seed = -1"), {"@2:8", "at least 0", "nearest valid: 0"}},
      {"momentum of one", with("0.9", "1.0"), {"@19:12", "optimizer.momentum", "0 to 0.9999"}},
      {"negative learning rate", with("0.05", "-0.05"), {"@18:17", "0 to 1000", "nearest valid: 0"}},
      {"too much prefetch", with("sharding = \"auto\"", "prefetch = 65"), {"@9:12", "1 to 64", "nearest valid: 64"}},
      {"negative threads", plus("[device]\nthreads = -1\n"), {"@21:11", "device.threads", "nearest valid: 0"}},
      {"unknown model", with("\"lenet\"", "\"lennet\""), {"@5:7", "model.zoo 'lennet'", "did you mean 'lenet'"}},
      {"unknown sharding", with("\"auto\"", "\"flie\""), {"@9:12", "data.sharding 'flie'", "did you mean 'file'"}},
      {"unknown algorithm", plus("[exchange]\nalgorithm = \"rnig\"\n"), {"@21:13", "did you mean 'ring'", "naive"}},
      {"unknown codec", plus("[exchange]\ncodec = \"fp61\"\n"), {"@21:9", "did you mean 'fp16'", "threshold"}},
      {"codec of the library's sums",
       plus("[exchange]\nalgorithm = \"mpi\"\ncodec = \"fp16\"\n"),
       {"@21:", "sums uncoded values", "\"ring\""}},
      {"codec of the GPUs' sums",
       plus("[exchange]\nalgorithm = \"nccl\"\ncodec = \"int8\"\n"),
       {"@21:", "the codec has a fixed exchange of its own"}},
      {"sums of GPUs on a CPU",
       plus("[exchange]\nalgorithm = \"nccl\"\n[device]\nkind = \"onednn\"\n"),
       {"@21:", "sums between GPUs", "nearest valid: \"ring\""}},
      {"priority of the GPUs' sums",
       plus("[exchange]\nalgorithm = \"nccl\"\npriority = true\n"),
       {"@22:", "exchange.algorithm = \"nccl\"", "one static order"}},
      {"algorithm beside a codec with its own",
       plus("[exchange]\nalgorithm = \"naive\"\ncodec = \"int8\"\n"),
       {"@21:", "exchange.algorithm is not used here", "codec = \"int8\"", "has a fixed exchange of its own"}},
      {"density of a dense codec",
       plus("[exchange]\ncodec = \"fp16\"\ndensity = 0.5\n"),
       {"@22:", "exchange.density is not used here", "\"topk\" or \"threshold\""}},
      {"error feedback of a codec that loses nothing",
       plus("[exchange]\ncodec = \"lossless\"\nerror_feedback = false\n"),
       {"@22:", "exchange.error_feedback is not used here: it is for lossy codecs", "leave it out"}},
      {"warm-up of no codec",
       plus("[exchange]\ncodec_warmup_steps = 9\n"),
       {"@21:", "exchange.codec_warmup_steps is not used here", "a codec"}},
      {"density beside a fixed tau",
       plus("[exchange]\ncodec = \"threshold\"\ntau = 0.1\ndensity = 0.5\n"),
       {"@23:", "exchange.density is not used here", "tau = 0"}},
      {"a lossy codec in double",
       plus("[device]\nkind = \"reference\"\ndtype = \"f64\"\n[exchange]\ncodec = \"int8\"\n"),
       {"@24:", "takes gradients of f32", "nearest valid: \"none\" or \"lossless\""}},
      {"a lossy codec and a loss scale",
       plus("[device]\nkind = \"cuda\"\ndtype = \"f16\"\n[exchange]\ncodec = \"topk\"\n"),
       {"@24:", "loss scale", "\"bf16\""}},
      {"unknown device", plus("[device]\nkind = \"oneDNN\"\n"), {"@21:8", "did you mean 'onednn'"}},
      {"unknown dtype", plus("[device]\ndtype = \"f23\"\n"), {"@21:9", "did you mean 'f32'"}},
      {"unknown schedule", with("momentum = 0.9", "schedule = \"cosin\""), {"@19:12", "did you mean 'cosine'"}},
      {"unknown restart",
       plus("[run]\nrestart = \"alawys\"\n"),
       {"@21:11", "run.restart 'alawys'", "auto, never, require"}},
      {"name with a slash", with("\"try\"", "\"a/b\""), {"@1:8", "letters, digits", "\"a_b\""}},
      {"empty name", with("\"try\"", "\"\""), {"@1:8", "nearest valid: \"run\""}},
      {"share of nothing", with("global = 64", "global = 64\nshares = [1, 0]"), {"@13:14", "nearest valid: 1"}},
      // Layers
      {"layer without a type", layers("[[model.layers]]\nunits = 3\n"), {"@3:", "needs its type", "conv, max_pool"}},
      {"unknown layer",
       layers("[[model.layers]]\ntype = \"cnov\"\n"),
       {"@4:8", "layer type 'cnov'", "did you mean 'conv'"}},
      {"key of another layer",
       layers("[[model.layers]]\ntype = \"dense\"\nunits = 3\nkernel = 3\n"),
       {"@6:1", "a dense layer does not use 'kernel'", "conv", "units"}},
      {"unknown key of a layer",
       layers("[[model.layers]]\ntype = \"conv\"\nchanels = 3\n"),
       {"@5:1", "did you mean 'channels'"}},
      {"conv without channels", layers("[[model.layers]]\ntype = \"conv\"\nkernel = 3\n"), {"@3:", "needs 'channels'"}},
      {"pool without kernel", layers("[[model.layers]]\ntype = \"max_pool\"\n"), {"@3:", "needs 'kernel'"}},
      {"dense of no units",
       layers("[[model.layers]]\ntype = \"dense\"\nunits = 0\n"),
       {"@5:9", "1 to", "nearest valid: 1"}},
      {"kernel in three directions",
       layers("[[model.layers]]\ntype = \"conv\"\nchannels = 4\nkernel = [3, 3, 3]\n"),
       {"@6:10", "3 entries", "at most 2"}},
      {"empty kernel",
       layers("[[model.layers]]\ntype = \"conv\"\nchannels = 4\nkernel = []\n"),
       {"@6:10", "1 or 2 numbers"}},
      {"groups that do not divide",
       layers("[[model.layers]]\ntype = \"conv\"\nchannels = 10\nkernel = 3\ngroups = 4\n"),
       {"@3:", "groups = 4", "8 or 12"}},
      {"name taken twice",
       layers("[[model.layers]]\ntype = \"relu\"\nname = \"a\"\n[[model.layers]]\ntype = \"tanh\"\nname = \"a\"\n"),
       {"@6:", "'a' is taken already", ":3)"}},
      {"add of one",
       layers("[[model.layers]]\ntype = \"add\"\ninputs = [\"a\"]\n"),
       {"@3:", "at least 2 inputs, not 1"}},
      {"concat of one",
       layers("[[model.layers]]\ntype = \"concat\"\ninputs = [\"a\"]\n"),
       {"@3:", "a concat layer takes at least 2 inputs, not 1"}},
      {"exponent for a whole number", with("64", "1e2"), {"@12:10", "write 100 without a decimal point or exponent"}},
      {"layers as one table", layers("[model.layers]\ntype = \"relu\"\n"), {"@3:", "[[model.layers]]"}},
      {"layers of numbers", layers("[model]\nlayers = [1, 2]\n"), {"@4:11", "a layer is a table", "a whole number"}},
      // Combinations
      {"no model", with("zoo = \"lenet\"", ""), {"@4:", "no model", "model.zoo"}},
      {"zoo and layers", plus("[[model.layers]]\ntype = \"relu\"\n"), {"@5:1", "exclude each other", ":20"}},
      {"no data", with("train = \"nowhere/train\"", ""), {"@7:", "data.train is missing"}},
      {"nothing to train", with("epochs = 2", "epochs = 0"), {"@15:1", "both 0"}},
      {"nesterov without momentum",
       with("momentum = 0.9", "momentum = 0\nnesterov = true"),
       {"@20:1", "momentum above 0"}},
      {"factor without its schedule", with("momentum = 0.9", "final_factor = 0.1"), {"@19:1", "schedule = \"cosine\""}},
      {"power without its schedule",
       with("momentum = 0.9", "schedule = \"cosine\"\npower = 2.0"),
       {"@20:1", "schedule = \"polynomial\""}},
      {"unknown rule", with("momentum = 0.9", "rule = \"adamm\""), {"@19:8", "did you mean 'adam'", "lamb"}},
      {"beta of another rule",
       with("momentum = 0.9", "beta1 = 0.8"),
       {"@19:1", "rule = \"adam\" or \"adamw\" or \"lamb\""}},
      {"momentum of adam",
       with("momentum = 0.9", "momentum = 0.5\nrule = \"adam\""),
       {"@19:1", "optimizer.momentum is not used here", "\"sgd\" or \"rmsprop\" or \"lars\""}},
      {"lazy lamb",
       "[model]\nzoo = \"ranking\"\n[data]\ntrain = \"x\"\n[optimizer]\nrule = \"lamb\"\nlazy = true\n",
       {"@7:1", "norm of a whole table", "leave optimizer.lazy out", "\"adamw\""}},
      {"lazy beside a codec",
       "[model]\nzoo = \"ranking\"\n[data]\ntrain = \"x\"\n[optimizer]\nlazy = true\n[exchange]\ncodec = \"fp16\"\n",
       {"@6:1", "the touched rows", "fp16"}},
      {"sparse layer that is no embedding",
       layers("[[model.layers]]\ntype = \"dense\"\nunits = 3\nsparse = true\n"),
       {"@6:1", "sparse"}},
      {"nesterov of lars", with("momentum = 0.9", "rule = \"lars\"\nnesterov = true"), {"@20:1", "rule = \"sgd\""}},
      {"alpha of adam", with("momentum = 0.9", "rule = \"adam\"\nalpha = 0.9"), {"@20:1", "rule = \"rmsprop\""}},
      {"scaling from nowhere", with("momentum = 0.9", "scaling = \"linear\""), {"@19:1", "optimizer.base_batch", "64"}},
      {"base batch without scaling",
       with("momentum = 0.9", "base_batch = 32"),
       {"@19:1", "scaling = \"linear\" or \"sqrt\""}},
      {"negative clip", with("momentum = 0.9", "clip_norm = -1.0"), {"@19:13", "nearest valid: 0"}},
      {"step without epochs", with("momentum = 0.9", "schedule = \"step\""), {"@19:1", "decay_at_epochs"}},
      {"decays out of order",
       with("momentum = 0.9", "schedule = \"step\"\ndecay_at_epochs = [3, 2]"),
       {"@20:1", "must increase"}},
      {"warm-up beyond the end", with("momentum = 0.9", "warmup_epochs = 5"), {"@19:1", "at most 2"}},
      {"segments of another algorithm",
       plus("[exchange]\nalgorithm = \"mpi\"\nsegment_kb = 7\n"),
       {"@22:1", "every algorithm except \"naive\""}},
      {"buckets that autotune chooses",
       plus("[exchange]\nalgorithm = \"auto\"\nbucket_mb = 8\n"),
       {"@22:1", "every algorithm except \"auto\""}},
      {"servers of another algorithm", plus("[exchange]\nservers = 2\n"), {"@21:1", "algorithm = \"server\""}},
      {"servers and an all-reduce",
       plus("[exchange]\nstrategy = \"server\"\nalgorithm = \"tree\"\n"),
       {"@22:1", "it is for exchange.strategy = \"synchronous\" or \"averaging\" or \"elastic\" or \"gossip\""}},
      {"servers and a rule of whole layers",
       plus("[exchange]\nstrategy = \"backup\"\n[device]\nloss_scale = 1024\n"),
       {"@23:1", "servers update parts of parameters", "write exchange.strategy = \"synchronous\""}},
      {"segments of servers whose messages are whole parts",
       plus("[exchange]\nstrategy = \"server\"\ncodec = \"int8\"\nsegment_kb = 7\n"),
       {"@23:1", "messages that are not coded"}},
      {"ranks for servers without servers", plus("[exchange.server]\nranks = 1\n"), {"@21:1", "strategy = \"server\""}},
      {"a key that is a table's, where it was before",
       plus("[exchange]\nserver_ranks = 1\n"),
       {"@21:1", "unknown key 'server_ranks'", "it belongs to [exchange.server] as 'ranks'"}},
      {"unknown key of a table in a section",
       plus("[exchange]\ncodec = \"none\"\n[exchange.server]\nrank = 1\n"),
       {"@23:1", "unknown key 'rank' in [exchange.server]", "did you mean 'ranks'"}},
      {"unknown table of a section",
       plus("[exchange.sevrer]\nranks = 1\n"),
       {"@20:11", "unknown section of [exchange] 'sevrer'", "did you mean 'server'"}},
      {"a table in a section as a value",
       plus("[exchange]\nserver = 1\n"),
       {"@21:1", "'exchange.server' is a section", "[exchange.server]"}},
      {"a table in a section as a list", plus("[[exchange.server]]\nranks = 1\n"), {"@20:", "is a section", "once"}},
      {"set of an unknown key of a table",
       good_config(),
       {"--set exchange.server.rnaks=1", "unknown key 'rnaks' in [exchange.server]", "did you mean 'ranks'"},
       {"exchange.server.rnaks=1"}},
      {"set in an unknown table",
       good_config(),
       {"--set exchange.sevrer.ranks=1", "unknown section 'exchange.sevrer'", "did you mean 'exchange.server'"},
       {"exchange.sevrer.ranks=1"}},
      {"environment of a table misspelt",
       good_config(),
       {"ECHELON_EXCHANGE_SERVER_RNAKS", "did you mean 'ECHELON_EXCHANGE_SERVER_RANKS'"},
       {},
       {{"ECHELON_EXCHANGE_SERVER_RNAKS", "1"}}},
      {"servers of two kinds",
       plus("[exchange]\nstrategy = \"server\"\nservers = 2\nserver.ranks = 1\n"),
       {"@22:1", "servers inside the workers"}},
      {"hosts of another algorithm", plus("[exchange]\nouter = \"tree\"\n"), {"@21:1", "algorithm = \"hierarchical\""}},
      {"an inner algorithm that has no halves",
       plus("[exchange]\nalgorithm = \"hierarchical\"\ninner = \"binomail\"\n"),
       {"@22:9", "did you mean 'binomial'"}},
      {"shares of a growing batch",
       with("64", "64\nshares = [1, 3]\nscale_with_replicas = true"),
       {"@13:1", "shares cut a fixed global batch"}},
      {"filled batches under batch norm",
       "[[model.layers]]\ntype = \"batch_norm\"\n[data]\ntrain = \"x\"\nragged = \"zero_weight\"\n",
       {"@5:1", "batch_norm", ":1)"}},
      {"accumulation that does not divide", with("64", "64\naccumulation = 3"), {"@12:1", "63 or 66"}},
      // Batch arithmetic
      {"batch on 3 replicas", good_config(), {"@12:1", "batch.global = 64", "3 replicas", "63 or 66"}, {}, {}, 3},
      {"batch on many replicas", with("64", "4"), {"@12:1", "8 replicas", "nearest valid: 8"}, {}, {}, 8},
      {"accumulation on 4 replicas", with("64", "60\naccumulation = 2"), {"@12:1", "56 or 64"}, {}, {}, 4},
      {"shares that do not divide", with("64", "63\nshares = [1, 3]"), {"@12:1", "shares", "60 or 64"}, {}, {}, 2},
      {"a share too many", with("64", "64\nshares = [1, 2, 1]"), {"@13:1", "3 entries for 2 replicas"}, {}, {}, 2},
      {"as replicas on two",
       with("sharding = \"auto\"", "as_replicas = 4"),
       {"@9:1", "data.as_replicas = 4", "one replica"},
       {},
       {},
       2},
      // Flags and environment
      {"set without a value", good_config(), {"--set batch.global", "section.key=value"}, {"batch.global"}},
      {"set of an unknown key", good_config(), {"--set batch.globl=3", "did you mean 'global'"}, {"batch.globl=3"}},
      {"set of an unknown section", good_config(), {"--set bach.global=3", "did you mean 'batch'"}, {"bach.global=3"}},
      {"set out of range", good_config(), {"--set data.prefetch=99", "nearest valid: 64"}, {"data.prefetch=99"}},
      {"set of the wrong type", good_config(), {"--set batch.global=many", "whole number"}, {"batch.global=many"}},
      {"set that does not divide", good_config(), {"--set batch.global=65", "64 or 66"}, {"batch.global=65"}, {}, 2},
      {"environment out of range",
       good_config(),
       {"ECHELON_BATCH_GLOBAL=-1", "nearest valid: 0"},
       {},
       {{"ECHELON_BATCH_GLOBAL", "-1"}}},
      {"environment misspelt",
       good_config(),
       {"ECHELON_BATCH_GLOBL", "did you mean 'ECHELON_BATCH_GLOBAL'"},
       {},
       {{"ECHELON_BATCH_GLOBL", "8"}}},
  };
  return all;
}

}  // namespace echelon::test
