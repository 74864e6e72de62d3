#include "train/codec_record.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace echelon {

using nlohmann::ordered_json;

ordered_json json_of(const CodecRecord& codec) {
  ordered_json json = {{"bytes_before", codec.bytes_before}, {"bytes_after", codec.bytes_after}};
  if (!codec.lossy) return json;
  json["residual_norm"] =
      std::isfinite(codec.residual_norm) ? ordered_json(codec.residual_norm) : ordered_json(nullptr);
  json["density"] = codec.density;
  if (codec.tau > 0) json["tau"] = codec.tau;
  return json;
}

std::string codec_text(const std::string& name, const CodecRecord& codec) {
  const double ratio = codec.bytes_after > 0 ? codec.bytes_before / codec.bytes_after : 0;
  std::string text = fmt::format("{}: {:.{}f} times fewer bytes", name, ratio, ratio < 100 ? 2 : 0);
  if (codec.lossy && codec.density < 1) text += fmt::format(", density {:.3g}", codec.density);
  if (codec.tau > 0) text += fmt::format(", tau {:.3g}", codec.tau);
  if (codec.lossy) text += fmt::format(", residual norm {:.3g}", codec.residual_norm);
  return text;
}

}  // namespace echelon
