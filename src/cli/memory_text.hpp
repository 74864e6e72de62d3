// SPDX-License-Identifier: Apache-2.0
// The predicted memory of a rank as text, for `check` and `plan`.
#pragma once

#include <string>

#include "config/schema.hpp"
#include "data/read_memory.hpp"
#include "parallel/footprint.hpp"

namespace echelon::cli {

// Returns one line without its label: the memory of a rank that holds the whole model, by purpose, and the memory for
// reading its data, if known.
std::string memory_text(const Config& config, const Footprint& memory, const ReadMemory* reading = nullptr);

}  // namespace echelon::cli
