// SPDX-License-Identifier: Apache-2.0
// echelon data inspect
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/inspect_foreign.hpp"
#include "cli/options.hpp"
#include "data/class_mix.hpp"
#include "data/dataset.hpp"
#include "data/describe.hpp"
#include "data/format.hpp"
#include "data/label_counts.hpp"
#include "data/location.hpp"
#include "data/sample_file.hpp"
#include "data/sample_plan.hpp"
#include "data/shard_header.hpp"
#include "data/step_labels.hpp"
#include "h5/file.hpp"

namespace echelon::cli {
namespace {

Sharding sharding_of(const std::string& name) {
  const std::vector<std::string> known{"auto", "file", "record", "replicated"};
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) throw ConfigError(unknown_name("sharding", name, known));
  return static_cast<Sharding>(found - known.begin());
}

// Counts the labels of each class; reads them in blocks. Labels of places and steps that are no class, which
// model.ignore_label can leave out, are counted behind the last class.
std::vector<std::int64_t> count_classes(const Dataset& dataset) {
  constexpr std::int64_t kBlock = 1 << 16;
  const std::int64_t each = dataset.label_shape.elems(), block = std::max<std::int64_t>(1, kBlock / each);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dataset.classes) + 1, 0);
  std::vector<std::int32_t> labels;
  for (std::size_t file = 0; file < dataset.shards.size(); ++file) {
    const Shard& shard = dataset.shards[file];
    const SampleFile source(dataset, shard);
    for (std::int64_t first = 0; first < shard.samples; first += block) {
      const std::int64_t count = std::min(block, shard.samples - first);
      if (dataset.step_labels) {
        Chunk chunk;
        chunk.begin = shard.first + first, chunk.end = chunk.begin + count, chunk.file = file;
        read_step_labels(dataset, source, chunk);
        labels = std::move(chunk.labels);
      } else {
        labels.resize(static_cast<std::size_t>(count * each));
        source.read_classes(first, count, labels.data());
      }
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const std::int32_t label = labels[i];
        if (!dataset.has_many_classes())
          require_class(shard.path, first + static_cast<std::int64_t>(i), label, dataset.classes);
        ++counts[static_cast<std::size_t>(label >= 0 && label < dataset.classes ? label : dataset.classes)];
      }
    }
  }
  return counts;
}

std::string file_name(const Shard& shard) { return std::filesystem::path(shard.path).filename().string(); }

// Rows shown of long tables; the others are only counted.
constexpr std::size_t kRows = 24;

void print_table(const Table& table, std::size_t rows) {
  fmt::print("{}", table.text());
  if (rows > kRows) fmt::print(".. and {} more\n", count_text(static_cast<std::int64_t>(rows - kRows)));
}

void print_files(const Dataset& dataset) {
  Table files({"file", "samples", "chunk", "compressed", "checksums", "stored"});
  for (const Shard& shard : std::span(dataset.shards).first(std::min(kRows, dataset.shards.size())))
    files.row({file_name(shard), count_text(shard.samples),
               shard.chunk.rank() == 0 ? "none" : fmt::format("{}", shard.chunk[0]), shard.deflate ? "yes" : "no",
               shard.checksums ? "yes" : "none", bytes_text(static_cast<double>(shard.bytes))});
  print_table(files, dataset.shards.size());
  fmt::print("\n");
}

void print_classes(const Dataset& dataset) {
  std::vector<std::int64_t> counts = count_classes(dataset);
  const bool named = !dataset.class_names.empty();
  const std::int64_t none = counts.back(), all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  counts.pop_back();
  const char* what = dataset.has_many_classes() ? "labels" : "samples";
  Table classes(named ? std::vector<std::string>{"class", what, "share", "name"}
                      : std::vector<std::string>{"class", what, "share"});
  for (std::size_t c = 0; c < std::min(kRows, counts.size()); ++c) {
    const double share = static_cast<double>(counts[c]) / static_cast<double>(all);
    std::vector<std::string> row{std::to_string(c), count_text(counts[c]), fmt::format("{:.1f} %", 100 * share)};
    if (named) row.push_back(dataset.class_names[c]);
    classes.row(std::move(row));
  }
  print_table(classes, counts.size());
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  fmt::print("least {}, most {}\n\n", count_text(*least), count_text(*most));
  if (none > 0) fmt::print("{} labels are no class: model.ignore_label leaves them out\n\n", count_text(none));
}

// "digits-0000, digits-0003[0:20)", truncated if there are many.
std::string runs_text(const Dataset& dataset, const std::vector<SamplePlan::Run>& runs) {
  if (runs.size() == dataset.shards.size() && std::all_of(runs.begin(), runs.end(), [&](const SamplePlan::Run& run) {
        return run.count == dataset.shards[static_cast<std::size_t>(run.file)].samples;
      }))
    return "all";
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, runs.size()); ++i) {
    const Shard& shard = dataset.shards[static_cast<std::size_t>(runs[i].file)];
    text += (i > 0 ? ", " : "") + std::filesystem::path(shard.path).stem().string();
    if (runs[i].count < shard.samples) text += fmt::format("[{}:{})", runs[i].first, runs[i].first + runs[i].count);
  }
  return runs.size() > kShown ? text + fmt::format(" and {} more", runs.size() - kShown) : text;
}

void print_plan(const Dataset& dataset, const InspectOptions& options, Sharding sharding) {
  DataConfig config;
  config.sharding = sharding;
  std::vector<std::int64_t> batch(static_cast<std::size_t>(options.replicas), options.batch / options.replicas);
  for (std::int64_t r = 0; r < options.batch % options.replicas; ++r) ++batch[static_cast<std::size_t>(r)];
  config.train = options.location;
  const SamplePlan plan(plan_request(dataset, config, batch, 1));

  fmt::print("{} replica{}, sharding {}{}, global batch {}: {} steps an epoch\n", options.replicas,
             options.replicas == 1 ? "" : "s", name_of(plan.sharding()),
             config.sharding == Sharding::automatic ? " (auto)" : "", options.batch,
             count_text(plan.steps_per_epoch()));
  Table replicas({"replica", "samples", "batch", "repeats", "files"});
  for (int r = 0; r < std::min(plan.replicas(), static_cast<int>(kRows)); ++r)
    replicas.row({std::to_string(r), count_text(plan.owned(r)), count_text(plan.batch(r)),
                  count_text(plan.steps_per_epoch() * plan.batch(r) - plan.owned(r)),
                  runs_text(dataset, plan.runs(r))});
  print_table(replicas, static_cast<std::size_t>(plan.replicas()));
  const SamplePlan::Coverage coverage = plan.coverage(0);
  fmt::print("in an epoch: {} samples once, {} more often{}, {} never\n", count_text(coverage.once),
             count_text(coverage.more), coverage.most > 1 ? fmt::format(" (up to {} times)", coverage.most) : "",
             count_text(coverage.never));
  const std::int64_t even = (dataset.samples() + options.batch - 1) / options.batch;
  if (plan.sharding() == Sharding::file && plan.steps_per_epoch() > even + even / 20)
    fmt::print("the files cannot be divided evenly: sharding = record would take {} steps instead of {}\n",
               count_text(even), count_text(plan.steps_per_epoch()));
  for (const std::string& hint : layout_hints(dataset, config.buffer_mb)) fmt::print("warning: {}\n", hint);
  for (const std::string& warning : location_warnings(options.location)) fmt::print("warning: {}\n", warning);
  if (dataset.label_sample == nullptr) return;
  const ClassMix mix = class_mix(*dataset.label_sample, &plan);
  if (mix.known) fmt::print("classes: {}\n", mix_text(mix));
  for (const std::string& warning : label_warnings(dataset, options.location)) fmt::print("warning: {}\n", warning);
  for (const std::string& warning : mix_warnings(mix, plan, dataset, config)) fmt::print("warning: {}\n", warning);
}

// Describes the data in one or two lines.
void print_head(const Dataset& dataset, const std::string& location, const std::string& bytes) {
  const std::string files = counted(static_cast<std::int64_t>(dataset.shards.size()), "file");
  fmt::print("{}: {}; in {}, {} stored\n", location, content_text(dataset), files, bytes);
  fmt::print("checksums: {}\n", checksums_text(dataset));
  if (dataset.vocabulary.size() == 0)
    fmt::print("x = (value * {:.6g} - mean) / std, mean {}, std {}\n", dataset.scale, numbers_text(dataset.mean),
               numbers_text(dataset.std));
  fmt::print("\n");
}

// Prints the first entries on one line.
void print_vocabulary(const char* what, const Vocabulary& vocabulary) {
  constexpr std::size_t kShown = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, vocabulary.entries().size()); ++i)
    text += (i > 0 ? " " : "") + fmt::format("'{}'", token_text(vocabulary.entries()[i]));
  const std::int64_t more = vocabulary.size() - static_cast<std::int64_t>(kShown);
  fmt::print("{}: {}{}\n\n", what, text, more > 0 ? fmt::format(" and {} more", count_text(more)) : "");
}

}  // namespace

int run_data_inspect(const InspectOptions& options) {
  if (options.verify) return run_data_verify(options.location);
  const Sharding sharding = sharding_of(options.sharding);
  if (options.replicas < 1) throw ConfigError("--replicas must be 1 or more");
  if (options.batch < options.replicas)
    throw ConfigError(
        fmt::format("--batch {} gives {} replicas less than one sample each", options.batch, options.replicas));
  if (const std::string why = not_a_shard(files_at(options.location).front()); !why.empty())
    return inspect_foreign(options.location, why);
  Dataset dataset = open_dataset(options.location, 0, Labels::optional);
  if (!dataset.has_many_classes()) dataset.label_sample = std::make_shared<const LabelSample>(dataset);
  std::uint64_t bytes = 0;
  for (const Shard& shard : dataset.shards) bytes += shard.bytes;
  print_head(dataset, options.location, bytes_text(static_cast<double>(bytes)));
  print_files(dataset);
  const bool labelled = dataset.kind == DataKind::samples || dataset.kind == DataKind::sequences;
  if (labelled && dataset.labelled && !dataset.has_numbers()) print_classes(dataset);
  if (dataset.vocabulary.size() > 0) print_vocabulary("tokens", dataset.vocabulary);
  if (dataset.target_vocabulary.size() > 0) print_vocabulary("target tokens", dataset.target_vocabulary);
  print_plan(dataset, options, sharding);
  return kExitOk;
}

}  // namespace echelon::cli
