// What each codec says of a span of values, and what it then owes: plain loops, one value after another.
#pragma once

#include <string>
#include <vector>

#include "comm/codec/codec.hpp"

namespace echelon::test {

struct OracleEncoding {
  std::vector<float> encoded, residual;
};

// `residual` holds the residual before; tau is fixed (options.tau > 0) for `threshold`.
OracleEncoding oracle_of(const std::string& codec, const std::vector<float>& values, const std::vector<float>& residual,
                         std::uint64_t key, std::int64_t first, const CodecOptions& options);

}  // namespace echelon::test
