// Ready-made models. Adding one: a file here and a line in zoo.cpp's table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/graph.hpp"

namespace echelon {

// Builds the named model for samples of `input` (C, H, W) and `classes` outputs, with its softmax loss. An unknown name
// is a ConfigError with the nearest known one; an input that the model cannot take, one that says what it takes.
Graph build_zoo(std::string_view name, const Shape& input, std::int64_t classes);
std::vector<std::string> zoo_names();

}  // namespace echelon
