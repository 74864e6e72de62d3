// SPDX-License-Identifier: Apache-2.0
// echelon data import hdf5
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/import_on_ranks.hpp"
#include "cli/import_text.hpp"
#include "cli/options.hpp"
#include "config/parse.hpp"
#include "data/import/hdf5_import.hpp"
#include "data/reading_rate.hpp"

namespace echelon::cli {
namespace {

// Prints how fast samples are read in random order, from the files as they lie and from the shards.
void print_reading(const std::string& experiment, const std::string& shards) {
  const Config config = load_config(experiment);
  const auto rate = [&](Dataset set) {
    demand_labels(set, config.model);
    return reading_rate(set).samples_s();
  };
  const double before = rate(open_dataset(config.data.train, config.data)), after = rate(open_dataset(shards));
  fmt::print("reading in random order: {} samples/s as the files lie, {} samples/s from the shards\n",
             rate_text(before), rate_text(after));
}

}  // namespace

int run_hdf5_import(const ImportOptions& options) {
  if (options.inputs.size() != 1)
    throw ConfigError(
        fmt::format("hdf5 takes one experiment (TOML) whose [data.hdf5] describes the files of data.train; "
                    "{} given",
                    counted(std::ssize(options.inputs), "input")));
  const ShardOptions shards = shard_options(options);
  bool prints = false;
  const int code = import_on_ranks(options, "samples", [&](const ImportTeam& team) {
    prints = team.rank == 0;
    return write_hdf5(shards, team);
  });
  if (code == kExitOk && prints)
    print_reading(options.inputs[0], holds_out(shards) ? shards.out + "/train" : shards.out);
  return code;
}

}  // namespace echelon::cli
