// SPDX-License-Identifier: Apache-2.0
#include "train/codec_record.hpp"

#include <fmt/format.h>

namespace echelon::inline train {

std::optional<CodecFigures> figures_of(const CodecRecord& codec) {
  if (!(codec.bytes_before > 0)) return {};
  CodecFigures figures{.bytes_before = codec.bytes_before, .bytes_after = codec.bytes_after, .seconds = codec.seconds};
  if (!codec.lossy) return figures;
  figures.residual_norm = codec.residual_norm;
  figures.density = codec.density;
  if (codec.tau > 0) figures.tau = codec.tau;
  return figures;
}

std::string codec_text(const std::string& name, const CodecRecord& codec) {
  const double ratio = codec.bytes_after > 0 ? codec.bytes_before / codec.bytes_after : 0;
  std::string text = fmt::format("{}: {:.{}f} times fewer bytes", name, ratio, ratio < 100 ? 2 : 0);
  if (codec.lossy && codec.density < 1) text += fmt::format(", density {:.3g}", codec.density);
  if (codec.tau > 0) text += fmt::format(", tau {:.3g}", codec.tau);
  if (codec.lossy) text += fmt::format(", residual norm {:.3g}", codec.residual_norm);
  return text;
}

}  // namespace echelon::inline train
