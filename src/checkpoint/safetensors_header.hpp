// The header of a safetensors file: which tensors lie where behind it.
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

// The tensors in the order of their values. `value_bytes`: what follows the header in the file. Accepts the headers
// that the format's own library accepts, version 0.8, and no others: the values of all tensors, one after the other,
// cover exactly these bytes. Throws std::invalid_argument with what is wrong, which names the tensor.
std::vector<SafeTensor> safetensors_header(const std::string& text, std::uint64_t value_bytes);

}  // namespace echelon::inline checkpoint
