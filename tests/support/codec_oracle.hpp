// SPDX-License-Identifier: Apache-2.0
// Oracle of every codec: what it encodes of a span of values and what stays as residual, by plain loops.
#pragma once

#include <string>
#include <vector>

#include "comm/codec/codec.hpp"

namespace echelon::test {

struct OracleEncoding {
  std::vector<float> encoded, residual;
};

// `residual` is the residual before the encoding; for `threshold` tau must be fixed (options.tau > 0).
OracleEncoding oracle_of(const std::string& codec, const std::vector<float>& values, const std::vector<float>& residual,
                         std::uint64_t key, std::int64_t first, const CodecOptions& options);

}  // namespace echelon::test
