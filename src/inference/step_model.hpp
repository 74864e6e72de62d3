// SPDX-License-Identifier: Apache-2.0
// A trained model that reads text token by token and gives the logits of the next token, for several texts side by
// side, one per row. Decoders (sampler.hpp, beam.hpp) only see the interface.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/state.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "inference/step_graphs.hpp"
#include "model/program.hpp"

namespace echelon::inline inference {

class TextModel {
 public:
  virtual ~TextModel() = default;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t classes() const = 0;  // K
  // Each row reads one more token of tokens (rows). Returns the logits of the next one, (rows, K), valid until the next
  // call.
  virtual std::span<const double> read(std::span<const std::int32_t> tokens) = 0;
  // Makes row r continue the text of row from[r].
  virtual void go_on_from(std::span<const std::int64_t> from) = 0;
};

// Sources in the form of the loader's batches, with N = sentences.
struct SourceTexts {
  const std::int32_t* tokens = nullptr;   // (N, T), padded
  const std::int32_t* lengths = nullptr;  // (N); null: all are T
};

class StepwiseModel final : public TextModel {
 public:
  // Makes `beams` rows for each of `sentences`. Weights are zero until they are loaded through visit_weights. The
  // device must outlive it. Throws MemoryError, and EnvironmentError for an op that the device does not have.
  StepwiseModel(StepGraphs graphs, Device& device, DType dtype, std::int64_t sentences, std::int64_t beams);

  // Shows "weights/<parameter>" of the whole model.
  void visit_weights(StateVisitor& visitor);
  // Replaces the matrices by their 8-bit form (checkpoint/quantise.hpp).
  void quantise_weights();

  // Makes all texts empty again: states are zeros.
  void begin();
  // The same for translations of these sources: rows [s * beams, (s + 1) * beams) belong to source s.
  void begin(const SourceTexts& sources);

  std::int64_t rows() const override { return sentences_ * beams_; }
  std::int64_t classes() const override;
  std::span<const double> read(std::span<const std::int32_t> tokens) override;
  void go_on_from(std::span<const std::int64_t> from) override;

 private:
  void encode(const SourceTexts& sources);
  std::vector<std::byte> value_of(Program& program, const std::string& name);

  StepGraphs graphs_;
  Device& device_;
  std::int64_t sentences_, beams_;
  std::unique_ptr<Arenas> encoder_arenas_, step_arenas_;
  std::unique_ptr<Program> encoder_, step_;
  std::vector<std::vector<std::byte>> states_;  // (rows, units) in the arenas' dtype, in the order of graphs_.states
  std::vector<double> logits_;
};

}  // namespace echelon::inline inference
