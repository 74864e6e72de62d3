// SPDX-License-Identifier: Apache-2.0
#include "h5/lzf.hpp"

#include <algorithm>
#include <cstring>

namespace echelon::h5 {
namespace {

constexpr std::size_t kMostRatio = 100;  // 3 bytes expand to at most 264

// Follows H5Z_func_t: returns 0 on failure. `values`: version of the filter, version of the format, bytes of a chunk.
std::size_t inflate_chunk(unsigned flags, std::size_t count, const unsigned* values, std::size_t bytes,
                          std::size_t* room, void** buffer) {
  if ((flags & H5Z_FLAG_REVERSE) == 0) return 0;  // files are not written with it
  const std::size_t most = count > 2 && values[2] > 0 ? values[2] : bytes * kMostRatio;
  auto* out = static_cast<std::uint8_t*>(H5allocate_memory(std::max<std::size_t>(most, 1), false));
  if (out == nullptr) return 0;
  const std::size_t got = lzf_inflate(static_cast<const std::uint8_t*>(*buffer), bytes, out, most);
  if (got == 0) {
    H5free_memory(out);
    return 0;
  }
  H5free_memory(*buffer);
  *buffer = out;
  *room = most;
  return got;
}

}  // namespace

// A byte below 32 is the number of literal bytes, minus one. Any other byte holds 3 bits of a length and 5 bits of a
// distance back; length 7 continues in the next byte; the last byte holds the low bits of the distance, minus one.
std::size_t lzf_inflate(const std::uint8_t* in, std::size_t bytes, std::uint8_t* out, std::size_t most) {
  std::size_t at = 0, to = 0;
  while (at < bytes) {
    const std::size_t control = in[at++];
    if (control < 32) {
      const std::size_t run = control + 1;
      if (run > bytes - at || run > most - to) return 0;
      std::memcpy(out + to, in + at, run);
      at += run;
      to += run;
      continue;
    }
    std::size_t length = control >> 5;
    if (length == 7) {
      if (at == bytes) return 0;
      length += in[at++];
    }
    length += 2;
    if (at == bytes) return 0;
    const std::size_t back = ((control & 31) << 8 | in[at++]) + 1;
    if (back > to || length > most - to) return 0;
    for (const std::size_t end = to + length; to < end; ++to) out[to] = out[to - back];  // both may overlap
  }
  return to;
}

void register_lzf() {
  static const H5Z_class2_t kind = {H5Z_CLASS_T_VERS, kLzf, 0, 1, "lzf", nullptr, nullptr, inflate_chunk};
  H5Zregister(&kind);
}

}  // namespace echelon::h5
