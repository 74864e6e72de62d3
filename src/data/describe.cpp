#include "data/describe.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace echelon::inline data {

namespace {

std::string labels_text(const Dataset& dataset) {
  if (dataset.has_numbers()) return counted(dataset.label_shape.elems(), "regression target");
  return fmt::format("{} classes", dataset.classes);
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

}  // namespace echelon::inline data
