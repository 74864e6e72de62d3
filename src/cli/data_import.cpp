// SPDX-License-Identifier: Apache-2.0
// echelon data import | synth
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/import_text.hpp"
#include "cli/options.hpp"
#include "data/import/like.hpp"
#include "data/import/sequence_writer.hpp"
#include "data/import/shard_writer.hpp"
#include "data/import/source.hpp"
#include "data/import/synth_pairs.hpp"
#include "data/import/synth_shots.hpp"
#include "data/import/text_writer.hpp"
#include "data/verify.hpp"

namespace echelon::cli {
namespace {

Shape shape_of(const std::vector<std::int64_t>& extents, std::size_t fewest = 3, std::size_t most = 3) {
  if (extents.empty()) return {};
  if (extents.size() < fewest || extents.size() > most || *std::min_element(extents.begin(), extents.end()) < 1)
    throw ConfigError(fmt::format("--shape is {}, must be {}C,H,W{}, each 1 or more", fmt::join(extents, ","),
                                  fewest < 3 ? "C,W or " : "", most > 3 ? " or C,D,H,W" : ""));
  for (const std::int64_t extent : extents)
    if (extent > 1 << 16) throw ConfigError(fmt::format("--shape holds {}, at most {}", extent, 1 << 16));
  const Shape shape{std::span<const std::int64_t>(extents)};
  if (shape.elems() > 1 << 26) throw ConfigError(fmt::format("--shape {} makes too large a sample", shape.text()));
  return shape;
}

DType stored_of(const std::string& name) {
  if (name == "u8") return DType::u8;
  if (name == "f32") return DType::f32;
  const std::vector<std::string> known{"u8", "f32"};
  throw ConfigError(unknown_name("--stored", name, known));
}

// An option that only some formats take, with the reason why the others do not.
struct FormatOption {
  const char* option;
  std::vector<std::string> formats;
  const char* reason;
};

const std::vector<FormatOption>& format_options() {
  static const std::vector<FormatOption> all = {
      {"--shape", {"csv"}, "the other formats define the shape of their samples"},
      {"--label-column", {"csv"}, "the other formats have no columns"},
      {"--targets", {"csv"}, "the other formats have classes or tokens"},
      {"--stored", {"csv", "images", "tar"}, "idx and cifar hold bytes, series 32-bit floats, texts tokens"},
      {"--value-max",
       {"csv", "idx"},
       "the bytes of cifar, images and tar mean 1.0 at 255, and series and texts are not scaled"},
      {"--tokens", {"text", "words", "sequences", "pairs"}, "it selects how text is split into tokens"},
      {"--vocabulary", {"text", "words", "sequences", "pairs"}, "it limits the number of words"},
      {"--like",
       {"csv", "npy", "images", "tar", "text", "words", "sequences", "pairs"},
       "the classes of idx and cifar are numbers already"},
      {"--labels-as-they-are",
       {"csv", "idx", "hdf5", "npy", "images", "tar", "sequences"},
       "the other formats have no such labels"},
      {"--axes", {"npy"}, "the other formats define the order of their axes"},
      {"--step-labels", {"sequences"}, "the other formats have no steps with a label"},
      {"--heading", {"csv", "sequences"}, "the other formats have no line with names of columns"},
      {"--size", {"images", "tar"}, "the other formats define the shape of their samples"},
      {"--channels", {"images", "tar"}, "the other formats define the shape of their samples"},
      {"--skip-damaged", {"images", "tar"}, "files of the other formats must be whole"},
  };
  return all;
}

void refuse_options_of_other_formats(const ImportOptions& options) {
  const auto given = [&](const char* name) {
    return std::find(options.given.begin(), options.given.end(), name) != options.given.end();
  };
  for (const FormatOption& of : format_options())
    if (given(of.option) && std::find(of.formats.begin(), of.formats.end(), options.format) == of.formats.end())
      throw ConfigError(fmt::format("{} is for {}, not for {}: {}", of.option, fmt::join(of.formats, ", "),
                                    options.format, of.reason));
  if (given("--targets") && given("--label-column"))
    throw ConfigError("--targets replaces --label-column: the last columns are targets, and none is a class");
  if (options.format == "csv" && options.stored == "f32" && given("--value-max"))
    throw ConfigError("--value-max is for --stored u8: 32-bit floats are stored unchanged");
}

void print_heading(const std::string& heading) {
  if (!heading.empty()) fmt::print("line 1 skipped as a heading: {}\n", heading.substr(0, 80));
}

// Prints the last lines of an import: its files, and that they were read back if requested.
void finish(const std::vector<std::string>& files, bool verify) {
  if (verify) {
    const double start = now_s();
    const auto bytes = static_cast<double>(require_intact(files));
    print_verified(bytes, now_s() - start);
  }
  print_files_written(files);
}

int write_and_say(SampleSource& source, const ShardOptions& options, bool verify) {
  const double start = now_s();
  const ShardsWritten written = write_shards(source, options);
  print_samples_written(written, source.info().targets, now_s() - start);
  print_heading(source.info().heading);
  print_warning(written.empty_classes);
  print_measured(written);
  finish(written.files, verify);
  return kExitOk;
}

TextRequest text_request(const ImportOptions& options) {
  return {.format = options.format,
          .inputs = options.inputs,
          .tokens = options.tokens,
          .vocabulary = options.vocabulary,
          .like = options.like,
          .heading = heading_of(options.heading),
          .step_labels = options.step_labels};
}

int import_text(const ImportOptions& options) {
  const double start = now_s();
  const TextWritten written = write_token_shards(text_request(options), shard_options(options));
  const std::int64_t all = written.tokens + written.held_out;
  fmt::print("{} tokens of {} kinds in {}, {} ({})\n", count_text(all), count_text(written.vocabulary),
             counted(static_cast<std::int64_t>(written.files.size()), "file"),
             bytes_text(static_cast<double>(written.bytes)), seconds_text(now_s() - start));
  if (written.held_out > 0) fmt::print("the last {} of them held out for testing\n", count_text(written.held_out));
  if (written.unknown > 0)
    fmt::print("{:.2f} % of them are not in the vocabulary\n",
               100 * static_cast<double>(written.unknown) / static_cast<double>(all));
  finish(written.files, options.verify);
  return kExitOk;
}

int write_sequences_and_say(SequenceSource& source, const ShardOptions& options, bool verify) {
  const double start = now_s();
  const SequencesWritten written = write_sequences(source, options);
  const SequenceInfo& info = source.info();
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
  print_heading(info.heading);
  print_passed_over(info.passed);
  print_warning(written.empty_classes);
  if (!written.mean.empty()) fmt::print("mean {}, std {}\n", numbers_text(written.mean), numbers_text(written.std));
  finish(written.files, verify);
  return kExitOk;
}

}  // namespace

int run_data_import(const ImportOptions& options) {
  const std::vector<std::string> known = known_formats();
  if (std::find(known.begin(), known.end(), options.format) == known.end())
    throw ConfigError(unknown_name("format", options.format, known));
  refuse_options_of_other_formats(options);
  if (options.format == "images" || options.format == "tar") return run_image_import(options);
  if (options.format == "hdf5") return run_hdf5_import(options);
  if (options.format == "text" || options.format == "words") return import_text(options);
  if (options.format == "sequences" || options.format == "pairs")
    return write_sequences_and_say(*open_sequences(text_request(options)), shard_options(options), options.verify);
  if (!(options.value_max > 0)) throw ConfigError("--value-max must be above 0");
  auto source = open_source({.format = options.format,
                             .inputs = options.inputs,
                             .shape = shape_of(options.shape),
                             .label_column = options.label_column,
                             .targets = options.targets,
                             .stored = stored_of(options.stored),
                             .value_max = options.value_max,
                             .heading = heading_of(options.heading),
                             .axes = options.axes});
  if (!options.like.empty()) source = source_like(std::move(source), options.like);
  return write_and_say(*source, shard_options(options), options.verify);
}

// ConfigError for an unknown kind, and for options that it does not have.
void require_options_of_kind(const SynthOptions& options) {
  const std::vector<std::string> kinds = {"patterns", "fields", "numbers", "shots"};
  if (std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end())
    throw ConfigError(unknown_name("--kind", options.kind, kinds));
  for (const std::string& given : options.given)
    if (options.kind == "numbers" || options.kind == "shots" || (options.kind == "fields" && given != "--shape"))
      throw ConfigError(fmt::format("{} is not an option of --kind {}", given, options.kind));
}

int run_data_synth(const SynthOptions& options) {
  const auto parts = static_cast<std::int64_t>(options.unequal.size());
  const ShardOptions shards = {.out = options.out,
                               .prefix = options.prefix,
                               .shards = parts > 0 ? parts : options.shards,
                               .samples_per_shard = 0,
                               .unequal = options.unequal,
                               .chunk = options.chunk,
                               .slab_rows = options.slab_rows,
                               .compress = options.compress,
                               .checksums = !options.no_checksums,
                               .keep_order = true,  // classes alternate, numbers are drawn at random
                               .hold_out = options.hold_out};
  require_options_of_kind(options);
  if (options.kind == "shots")
    return write_sequences_and_say(*make_shots(options.samples, options.seed), shards, options.verify);
  if (options.kind == "numbers")
    return write_sequences_and_say(*make_number_pairs(options.samples, options.seed), shards, options.verify);
  const bool fields = options.kind == "fields";
  const SynthRequest request{.samples = options.samples,
                             .shape = shape_of(options.shape, fields ? 2 : 3, fields ? 4 : 3),
                             .classes = options.classes,
                             .stored = stored_of(options.stored),
                             .noise = options.noise,
                             .seed = options.seed};
  return write_and_say(fields ? *make_fields(request) : *make_synth(request), shards, options.verify);
}

}  // namespace echelon::cli
