// SPDX-License-Identifier: Apache-2.0
#include "cli/import_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace echelon::cli {

ShardOptions shard_options(const ImportOptions& options) {
  return {.out = options.out,
          .prefix = options.prefix,
          .shards = options.shards,
          .samples_per_shard = options.samples_per_shard,
          .unequal = options.unequal,
          .chunk = options.chunk,
          .slab_rows = options.slab_rows,
          .compress = options.compress,
          .checksums = !options.no_checksums,
          .keep_order = options.keep_order,
          .hold_out = options.hold_out,
          .hold_out_part = options.hold_out_part,
          .input = options.inputs.empty() ? "" : options.inputs[0],
          .labels_as_they_are = options.labels_as_they_are || !options.like.empty()};
}

void print_samples_written(const ShardsWritten& written, std::int64_t targets, double seconds) {
  fmt::print("{} of {} {}, {}, in {}, {} ({})\n", counted(written.samples + written.held_out, "sample"),
             written.sample_shape.text(), name_of(written.stored),
             targets > 0 ? counted(targets, "regression target")
                         : fmt::format("{} class{}", written.classes, written.classes == 1 ? "" : "es"),
             counted(static_cast<std::int64_t>(written.files.size()), "file"),
             bytes_text(static_cast<double>(written.bytes)), seconds_text(seconds));
  if (written.held_out > 0) fmt::print("{} of them held out for testing\n", count_text(written.held_out));
}

void print_measured(const ShardsWritten& written) {
  fmt::print("mean {}, std {}, values {:g} to {:g}\n", numbers_text(written.mean), numbers_text(written.std),
             written.value_range[0], written.value_range[1]);
}

void print_passed_over(const std::vector<PassedOver>& passed) {
  if (passed.empty()) return;
  const bool images =
      std::any_of(passed.begin(), passed.end(), [](const auto& p) { return p.what.ends_with(" image"); });
  fmt::print("skipped: {}{}\n", passed_over_text(passed), images ? " (JPEG and PNG are read; convert the others)" : "");
}

void print_warning(const std::string& text) {
  if (!text.empty()) fmt::print("warning: {}\n", text);
}

void print_verified(double bytes, double seconds) {
  fmt::print("verified: {} read back in {}, {}/s\n", bytes_text(bytes), seconds_text(seconds),
             bytes_text(bytes / seconds));
}

void print_files_written(const std::vector<std::string>& files) {
  fmt::print("{}", files.front());
  if (files.size() > 1) fmt::print(" .. {}", files.back());
  fmt::print("\n");
}

}  // namespace echelon::cli
