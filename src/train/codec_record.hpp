// SPDX-License-Identifier: Apache-2.0
// The figures of a codec in records.
#pragma once

#include <optional>
#include <string>

#include "exchange/strategy.hpp"
#include "report/figures.hpp"

namespace echelon::inline train {

// None if nothing was encoded.
std::optional<CodecFigures> figures_of(const CodecRecord& codec);
// "fp16: 2.0 times fewer bytes, residual norm 0.012".
std::string codec_text(const std::string& name, const CodecRecord& codec);

}  // namespace echelon::inline train
