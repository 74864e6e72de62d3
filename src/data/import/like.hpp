// SPDX-License-Identifier: Apache-2.0
// `--like`: an import with the class numbers and the scaling of an earlier data set, so that a model trained on that
// set can read the new one. (For vocabularies see tokens.hpp.)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/import/sequence_source.hpp"
#include "data/import/source.hpp"

namespace echelon::inline data {

// Returns the source with the class numbers, mean and std of the data set at `location`. Throws DataError if the set
// has another kind or shape, or lacks a class of the source.
std::unique_ptr<SampleSource> source_like(std::unique_ptr<SampleSource> source, const std::string& location);
std::unique_ptr<SequenceSource> source_like(std::unique_ptr<SequenceSource> source, const std::string& location);

// For a set of images, gives `info` the classes, mean and std of the set, and its size if `info.sample` has none (C, 0,
// 0). Returns the set's numbers for the input's classes. Throws the same DataErrors.
std::vector<std::int32_t> take_classes(SourceInfo& info, const std::string& location);

}  // namespace echelon::inline data
