// A 64-bit checksum of bytes for the agreement of replicas, checkpoints and config hashes. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon {

// Four interleaved multiply-rotate lanes (the construction of xxHash64), so that it runs at memory speed.
std::uint64_t checksum64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum64(std::string_view text) { return checksum64(text.data(), text.size()); }

std::string hex64(std::uint64_t value);  // 16 digits

}  // namespace echelon
