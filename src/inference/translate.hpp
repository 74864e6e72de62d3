// Text written by a trained model: from a prompt (language models) or for a source (translation models).
//
// Sources of a data set are dealt to ranks batch by batch, as in inference.hpp, and each is translated alone: any
// number of ranks with equal devices and threads finds the same texts. A text from a prompt is written by one rank.
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
  std::int64_t sentences = 1, beams = 1;  // StepwiseModel
  bool int8 = false;                      // of the 8-bit form of the weights
};

// The step model of a checkpoint with its weights. ConfigError for models without one (step_graphs), DataError where
// the checkpoint is of another model.
std::unique_ptr<StepwiseModel> load_step_model(const SavedModel& saved, const SampleForm& form, Device& device,
                                               const WriterOptions& options);

struct TranslateOptions {
  BeamOptions beam{};
  bool int8 = false;
  Engine* ranks = nullptr;  // null: this process alone
  bool texts = false;       // rank 0 gets all of them
};

struct Translations {
  std::vector<std::vector<std::int32_t>> texts;  // tokens of the target, by sample; on rank 0 with `texts`, else empty
  BleuCounts bleu;                               // against the targets, on all ranks
};

// Translates all pairs of a data set, in batches of config.evaluate.batch / beams sources. Targets that are cut to
// data.sequence_length are compared as they are cut. Collective over the ranks; with `texts` ranks send theirs to rank
// 0 at the end. Throws what load_step_model and `infer` throw.
Translations translate(const SavedModel& saved, const Dataset& data, Device& device, const TranslateOptions& options);

// Translates sources that are no data set, at least one and none empty, by this process alone.
std::vector<std::vector<std::int32_t>> translate_lines(const SavedModel& saved, const Dataset& like, Device& device,
                                                       const std::vector<std::vector<std::int32_t>>& sources,
                                                       const TranslateOptions& options);

}  // namespace echelon::inline inference
