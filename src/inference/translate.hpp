// SPDX-License-Identifier: Apache-2.0
// Writes text with a trained model: from a prompt (language models) or for a source (translation models).
//
// The sources of a data set are dealt to ranks batch by batch, as in inference.hpp, and translated independently: any
// number of ranks with equal devices and threads finds the same texts. One rank writes text from a prompt.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "checkpoint/saved_model.hpp"
#include "comm/engine.hpp"
#include "data/dataset.hpp"
#include "inference/beam.hpp"
#include "inference/bleu.hpp"
#include "inference/step_model.hpp"

namespace echelon::inline inference {

struct WriterOptions {
  std::int64_t sentences = 1, beams = 1;  // as for StepwiseModel
  bool int8 = false;                      // uses the 8-bit form of the weights
};

// Returns the step model of a checkpoint with its weights. Throws ConfigError for models without one (step_graphs),
// DataError if the checkpoint is of another model.
std::unique_ptr<StepwiseModel> load_step_model(const SavedModel& saved, const SampleForm& form, Device& device,
                                               const WriterOptions& options);

struct TranslateOptions {
  BeamOptions beam{};
  bool int8 = false;
  Engine* ranks = nullptr;  // null: this process alone
  bool texts = false;       // rank 0 receives all texts
};

struct Translations {
  std::vector<std::vector<std::int32_t>> texts;  // [sample] tokens of the target; filled on rank 0 with `texts`
  BleuCounts bleu;                               // against the targets; on all ranks
};

// Translates all pairs of a data set, in batches of config.evaluate.batch / beams sources. Targets that are truncated
// to data.sequence_length are compared as truncated. Collective over the ranks; with `texts`, ranks send theirs to rank
// 0 at the end. Throws what load_step_model and `infer` throw.
Translations translate(const SavedModel& saved, const Dataset& data, Device& device, const TranslateOptions& options);

// Translates given sources, at least one and none of them empty, in this process only.
std::vector<std::vector<std::int32_t>> translate_lines(const SavedModel& saved, const Dataset& like, Device& device,
                                                       const std::vector<std::vector<std::int32_t>>& sources,
                                                       const TranslateOptions& options);

}  // namespace echelon::inline inference
