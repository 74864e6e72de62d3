// model.weights: a run whose first step begins from the weights of a file (checkpoint/weights_file.hpp), by name.
//
// Strict unless model.weights_partial: the file has every tensor of the model, in its shape, and no other one. Partial:
// tensors that it lacks, or has in another shape, are drawn from the seed as without a file, and its other ones are
// left out; all are listed.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/arenas.hpp"
#include "model/graph.hpp"

namespace echelon::inline run {

struct InitialWeights {
  std::string path;                                           // of the file
  std::vector<std::string> loaded, missing, misshapen, left;  // names: by the model's parameters; `left` by the file

  // "12 tensors of w.safetensors; drawn: fc.weight, fc.bias; not in the model: head.weight"
  std::string text() const;
};

// What would be loaded. Reads the file's list of tensors; every byte of a checkpoint is verified. Throws as
// open_weights does, with the place of the key, and ConfigError where tensors do not fit (with the nearest name), or
// none does.
InitialWeights foresee_weights(const Config& config, const Graph& graph);

// Reads the rank's parts of these tensors of the file into the arenas. No message. Throws DataError.
void load_weights(const std::string& path, Arenas& arenas);

}  // namespace echelon::inline run
