// The content of a data set, for people.
#pragma once

#include <string>

#include "data/dataset.hpp"

namespace echelon::inline data {

// "1,500 samples of (1, 8, 8), 10 classes, u8", "a text of 1,003,855 tokens, 65 kinds, as 15,685 windows of 64",
// "270 sequences of up to 26 steps, 12 features, 9 classes", ..
std::string content_text(const Dataset& dataset);

}  // namespace echelon::inline data
