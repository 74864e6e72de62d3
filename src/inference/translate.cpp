// SPDX-License-Identifier: Apache-2.0
#include "inference/translate.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/progress.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/group.hpp"
#include "data/loader.hpp"
#include "data/sample_plan.hpp"
#include "inference/inference.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline inference {
namespace {

constexpr int kTextsChannel = 0;

std::int64_t sources_at_once(const Config& config, const BeamOptions& beam) {
  return std::max<std::int64_t>(1, config.evaluate.batch / beam.beams);
}

// Returns the labels of row `at` that count, without the final end token.
std::span<const std::int32_t> target_of(const Batch& batch, std::int64_t at, std::int32_t end) {
  const auto* labels = static_cast<const std::int32_t*>(batch.labels) + at * batch.target_length;
  const std::span<const std::int32_t> row(labels, static_cast<std::size_t>(batch.target_length));
  return row.first(static_cast<std::size_t>(std::find(row.begin(), row.end(), end) - row.begin()));
}

// (id, tokens, ..) of each text, as 32-bit numbers.
void pack(std::string& packed, std::int64_t id, const std::vector<std::int32_t>& tokens) {
  const auto put = [&](std::int32_t number) { packed.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  put(static_cast<std::int32_t>(id));
  put(static_cast<std::int32_t>(tokens.size()));
  for (const std::int32_t token : tokens) put(token);
}

void unpack(const std::string& packed, std::vector<std::vector<std::int32_t>>& texts) {
  std::vector<std::int32_t> numbers(packed.size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), packed.data(), packed.size());
  for (auto at = numbers.begin(); at != numbers.end();) {
    const auto id = static_cast<std::size_t>(*at++);
    const std::int32_t count = *at++;
    texts[id].assign(at, at + count);
    at += count;
  }
}

}  // namespace

std::unique_ptr<StepwiseModel> load_step_model(const SavedModel& saved, const SampleForm& form, Device& device,
                                               const WriterOptions& options) {
  auto model = std::make_unique<StepwiseModel>(step_graphs(saved.config.model, form), device, saved.config.device.dtype,
                                               options.sentences, options.beams);
  load_model(saved.checkpoint, [&](StateVisitor& visitor) { model->visit_weights(visitor); });
  if (options.int8) model->quantise_weights();
  return model;
}

Translations translate(const SavedModel& saved, const Dataset& data, Device& device, const TranslateOptions& options) {
  Config config = saved.config;
  config.evaluate.batch = sources_at_once(config, options.beam);
  const int rank = options.ranks != nullptr ? options.ranks->rank() : 0;
  const SamplePlan plan = inference_plan(data, config, options.ranks != nullptr ? options.ranks->size() : 1);
  Translations translations;
  std::string packed;
  if (rank < plan.replicas()) {
    const auto model = load_step_model(
        saved, data.form(), device, {.sentences = plan.batch(rank), .beams = options.beam.beams, .int8 = options.int8});
    Loader loader(data, plan, evaluation_loading(config, wide_of(config.device.dtype), rank));
    LongWork work("translation", "batches", plan.steps_per_epoch(),
                  rank == 0 ? progress_style(config.run.progress) : ProgressStyle::none, config.run.heartbeat_s);
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      work.at(step);
      const std::vector<std::int64_t> ids = counted_ids(plan, step, rank);
      if (ids.empty()) break;
      const Batch& batch = loader.next();
      model->begin({.tokens = static_cast<const std::int32_t*>(batch.samples), .lengths = batch.lengths});
      const std::vector<FoundText> found = beam_search(*model, options.beam);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        translations.bleu.add(found[i].tokens, target_of(batch, static_cast<std::int64_t>(i), options.beam.end));
        if (options.texts) pack(packed, ids[i], found[i].tokens);
      }
    }
  }
  std::vector<std::string> of_ranks = {packed};
  if (options.ranks != nullptr) {
    Group ranks(*options.ranks, kTextsChannel);
    ranks.sum(translations.bleu.counts());
    if (options.texts) of_ranks = ranks.gather(packed);
  }
  if (!options.texts || rank > 0) return translations;
  translations.texts.resize(static_cast<std::size_t>(data.samples()));
  for (const std::string& texts : of_ranks) unpack(texts, translations.texts);
  return translations;
}

std::vector<std::vector<std::int32_t>> translate_lines(const SavedModel& saved, const Dataset& like, Device& device,
                                                       const std::vector<std::vector<std::int32_t>>& sources,
                                                       const TranslateOptions& options) {
  std::size_t longest = 0;
  for (const std::vector<std::int32_t>& source : sources) longest = std::max(longest, source.size());
  SampleForm form = like.form();
  form.shape = {static_cast<std::int64_t>(longest)};
  const auto sentences = static_cast<std::size_t>(
      std::min<std::int64_t>(std::ssize(sources), sources_at_once(saved.config, options.beam)));
  const auto model = load_step_model(
      saved, form, device,
      {.sentences = static_cast<std::int64_t>(sentences), .beams = options.beam.beams, .int8 = options.int8});
  std::vector<std::vector<std::int32_t>> texts;
  while (texts.size() < sources.size()) {
    std::vector<std::int32_t> tokens(sentences * longest, 0), lengths(sentences, 1);
    const std::size_t count = std::min(sentences, sources.size() - texts.size());
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::int32_t>& source = sources[texts.size() + i];
      std::copy(source.begin(), source.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i * longest));
      lengths[i] = static_cast<std::int32_t>(source.size());
    }
    model->begin({.tokens = tokens.data(), .lengths = lengths.data()});
    std::vector<FoundText> found = beam_search(*model, options.beam);
    for (std::size_t i = 0; i < count; ++i) texts.push_back(std::move(found[i].tokens));
  }
  return texts;
}

}  // namespace echelon::inline inference
