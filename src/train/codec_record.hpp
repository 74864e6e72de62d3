// What a codec did, as records tell it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "exchange/strategy.hpp"

namespace echelon {

// {"bytes_before", "bytes_after"}, and where the codec is lossy "residual_norm", "density" and, where there is one,
// "tau".
nlohmann::ordered_json json_of(const CodecRecord& codec);
// "fp16: 2.0 times fewer bytes, residual norm 0.012".
std::string codec_text(const std::string& name, const CodecRecord& codec);

}  // namespace echelon
