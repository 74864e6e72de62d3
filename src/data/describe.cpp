#include "data/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/log.hpp"
#include "base/text.hpp"

namespace echelon::inline data {

namespace {

std::string labels_text(const Dataset& dataset) {
  if (dataset.has_numbers()) return counted(dataset.label_shape.elems(), "regression target");
  return dataset.classes == 1 ? "1 class" : fmt::format("{} classes", dataset.classes);
}

}  // namespace

std::string content_text(const Dataset& dataset) {
  const std::string samples = count_text(dataset.samples());
  const std::string kinds = count_text(dataset.vocabulary.size());
  std::int64_t tokens = 0;
  for (const Shard& shard : dataset.shards) tokens += shard.tokens;
  switch (dataset.kind) {
    case DataKind::samples:
      return fmt::format("{} samples of {}, {}, {}", samples, dataset.sample_shape.text(), labels_text(dataset),
                         name_of(dataset.stored));
    case DataKind::text:
      return fmt::format("a text of {} tokens, {} kinds, as {} windows of {}", count_text(tokens), kinds, samples,
                         dataset.length());
    case DataKind::sequences:
      return fmt::format(
          "{} sequences of up to {} steps, {}, {}", samples, dataset.length(),
          dataset.form().tokens() ? kinds + " kinds of token" : counted(dataset.sample_shape[1], "feature"),
          labels_text(dataset));
    case DataKind::pairs:
      return fmt::format("{} pairs of up to {} and {} tokens, {} and {} kinds", samples, dataset.length(),
                         dataset.target_length, kinds, count_text(dataset.target_vocabulary.size()));
  }
  return {};
}

std::string checksums_text(const Dataset& dataset) {
  const auto with =
      std::count_if(dataset.shards.begin(), dataset.shards.end(), [](const Shard& s) { return s.checksums; });
  if (with == 0) return "none";
  if (with == std::ssize(dataset.shards)) return "all";
  return fmt::format("of {} of {} files", with, dataset.shards.size());
}

void warn_without_checksums(const Dataset& dataset, const std::string& location) {
  static std::atomic<bool> warned = false;
  const std::string text = checksums_text(dataset);
  if (text == "all" || warned.exchange(true)) return;
  log_warning("{}: checksums: {}; damage to the values is not seen (import them again, or write them with fletcher32)",
              location, text);
}

}  // namespace echelon::inline data
