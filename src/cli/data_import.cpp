// echelon data import | synth
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/options.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "data/import/text_writer.hpp"

namespace echelon::cli {
namespace {

Shape shape_of(const std::vector<std::int64_t>& extents) {
  if (extents.empty()) return {};
  if (extents.size() != 3 || *std::min_element(extents.begin(), extents.end()) < 1)
    throw ConfigError(fmt::format("--shape is {}, must be C,H,W, each 1 or more", fmt::join(extents, ",")));
  for (const std::int64_t extent : extents)
    if (extent > 1 << 16) throw ConfigError(fmt::format("--shape holds {}, at most {}", extent, 1 << 16));
  const Shape shape{std::span<const std::int64_t>(extents)};
  if (shape.elems() > 1 << 26) throw ConfigError(fmt::format("--shape {} is too large a sample", shape.text()));
  return shape;
}

DType stored_of(const std::string& name) {
  if (name == "u8") return DType::u8;
  if (name == "f32") return DType::f32;
  const std::vector<std::string> known{"u8", "f32"};
  throw ConfigError(unknown_name("--stored", name, known));
}

void say_files(const std::vector<std::string>& files) {
  fmt::print("{}", files.front());
  if (files.size() > 1) fmt::print(" .. {}", files.back());
  fmt::print("\n");
}

int write_and_say(SampleSource& source, const ShardOptions& options) {
  const double start = now_s();
  const ShardsWritten written = write_shards(source, options);
  fmt::print("{} samples of {} {}, {}, in {} file{}, {} ({})\n", count_text(written.samples + written.held_out),
             written.sample_shape.text(), name_of(written.stored),
             source.info().targets > 0 ? counted(source.info().targets, "number") + " to meet"
                                       : fmt::format("{} classes", written.classes),
             written.files.size(), written.files.size() == 1 ? "" : "s", bytes_text(static_cast<double>(written.bytes)),
             seconds_text(now_s() - start));
  if (written.held_out > 0) fmt::print("{} of them held out for testing\n", count_text(written.held_out));
  fmt::print("mean {}, std {}, values {}\n", numbers_text(written.mean), numbers_text(written.std),
             fmt::format("{:g} to {:g}", written.value_range[0], written.value_range[1]));
  say_files(written.files);
  return kExitOk;
}

ShardOptions shards_of(const ImportOptions& options) {
  return {.out = options.out,
          .prefix = options.prefix,
          .shards = options.shards,
          .samples_per_shard = options.samples_per_shard,
          .unequal = options.unequal,
          .chunk = options.chunk,
          .compress = options.compress,
          .hold_out = options.hold_out,
          .hold_out_part = options.hold_out_part};
}

TextRequest text_request(const ImportOptions& options) {
  return {.format = options.format,
          .inputs = options.inputs,
          .tokens = options.tokens,
          .vocabulary = options.vocabulary,
          .like = options.like};
}

int import_text(const ImportOptions& options) {
  const double start = now_s();
  const TextWritten written = write_text(text_request(options), shards_of(options));
  const std::int64_t all = written.tokens + written.held_out;
  fmt::print("{} tokens of {} kinds in {}, {} ({})\n", count_text(all), count_text(written.vocabulary),
             counted(static_cast<std::int64_t>(written.files.size()), "file"),
             bytes_text(static_cast<double>(written.bytes)), seconds_text(now_s() - start));
  if (written.held_out > 0) fmt::print("the last {} of them held out for testing\n", count_text(written.held_out));
  if (written.unknown > 0)
    fmt::print("{:.2f} % of them are not in the vocabulary\n",
               100 * static_cast<double>(written.unknown) / static_cast<double>(all));
  say_files(written.files);
  return kExitOk;
}

int import_sequences(const ImportOptions& options) {
  const double start = now_s();
  const auto source = open_sequences(text_request(options));
  const SequencesWritten written = write_sequences(*source, shards_of(options));
  const SequenceInfo& info = source->info();
  const bool pairs = info.kind == DataKind::pairs;
  const std::int64_t all = written.samples + written.held_out;
  const std::string of = info.features > 0 ? fmt::format("{} features", info.features)
                                           : fmt::format("{} kinds of token", count_text(info.vocabulary.size()));
  fmt::print("{} {} of {} to {} steps (mean {:.1f}) of {}, {} {}, in {}, {} ({})\n", count_text(all),
             pairs ? "pairs" : "sequences", written.shortest, written.longest,
             static_cast<double>(written.steps) / static_cast<double>(all), of,
             count_text(pairs ? info.target_vocabulary.size() : static_cast<std::int64_t>(info.class_names.size())),
             pairs ? "of the target" : "classes", counted(static_cast<std::int64_t>(written.files.size()), "file"),
             bytes_text(static_cast<double>(written.bytes)), seconds_text(now_s() - start));
  if (written.held_out > 0) fmt::print("{} of them held out for testing\n", count_text(written.held_out));
  if (!written.mean.empty()) fmt::print("mean {}, std {}\n", numbers_text(written.mean), numbers_text(written.std));
  say_files(written.files);
  return kExitOk;
}

}  // namespace

int run_data_import(const ImportOptions& options) {
  if (options.format == "text" || options.format == "words") return import_text(options);
  if (options.format == "sequences" || options.format == "pairs") return import_sequences(options);
  if (!(options.value_max > 0)) throw ConfigError("--value-max must be above 0");
  const auto source = open_source({.format = options.format,
                                   .inputs = options.inputs,
                                   .shape = shape_of(options.shape),
                                   .label_column = options.label_column,
                                   .targets = options.targets,
                                   .stored = stored_of(options.stored),
                                   .value_max = options.value_max});
  return write_and_say(*source, shards_of(options));
}

int run_data_synth(const SynthOptions& options) {
  const auto source = make_synth({.samples = options.samples,
                                  .shape = shape_of(options.shape),
                                  .classes = options.classes,
                                  .stored = stored_of(options.stored),
                                  .noise = options.noise,
                                  .seed = options.seed});
  const auto parts = static_cast<std::int64_t>(options.unequal.size());
  return write_and_say(*source, {.out = options.out,
                                 .prefix = options.prefix,
                                 .shards = parts > 0 ? parts : options.shards,
                                 .samples_per_shard = 0,
                                 .unequal = options.unequal,
                                 .chunk = options.chunk,
                                 .compress = options.compress,
                                 .hold_out = 0});
}

}  // namespace echelon::cli
