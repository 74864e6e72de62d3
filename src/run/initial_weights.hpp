// SPDX-License-Identifier: Apache-2.0
// model.weights: a run whose first step begins from the weights of a file (checkpoint/weights_file.hpp), by name.
//
// Unless model.weights_partial is set, the file must have every tensor of the model, in its shape, and no other one.
// With it, tensors that the file lacks or has in another shape are drawn from the seed as without a file, and other
// tensors of the file are left out; all of them are listed.
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

// Returns what would be loaded. Reads the file's list of tensors; every byte of a checkpoint is verified. Throws as
// open_weights does, with the place of the key, and ConfigError if some tensor does not fit (with the nearest name), or
// none does.
InitialWeights foresee_weights(const Config& config, const Graph& graph);

// Reads this rank's parts of these tensors of the file into the arenas. Sends no message. Throws DataError.
void load_weights(const std::string& path, Arenas& arenas);

}  // namespace echelon::inline run
