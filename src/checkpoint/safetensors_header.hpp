// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: the tensors and the offsets of their values after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline checkpoint {

struct SafeTensor {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes after the header
};

// Returns the tensors in the order of their values. `value_bytes`: size of the file after the header. Accepts exactly
// the headers that version 0.8 of the format's own library accepts: the values of all tensors, one after the other,
// must cover exactly these bytes. Throws std::invalid_argument with the problem, naming the tensor.
std::vector<SafeTensor> safetensors_header(const std::string& text, std::uint64_t value_bytes);

}  // namespace echelon::inline checkpoint
