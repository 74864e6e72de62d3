// SPDX-License-Identifier: Apache-2.0
// echelon export: a trained model for other programs.
#include "checkpoint/export.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/saved_model.hpp"
#include "cli/choice.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

namespace {

// A file whose name says the other format would be read as that.
void require_extension(const std::string& out, bool onnx) {
  const std::filesystem::path path(out), own = onnx ? ".onnx" : ".safetensors", other = onnx ? ".safetensors" : ".onnx";
  if (path.extension() != other) return;
  throw ConfigError(fmt::format("--out {}: --format {} writes {} files; write --out {}, or --format {}", out,
                                own.string().substr(1), own.string(),
                                std::filesystem::path(path).replace_extension(own).string(), other.string().substr(1)));
}

}  // namespace

int run_export(const ExportOptions& options) {
  const bool onnx = is_second("--format", options.format, {"safetensors", "onnx"});
  const bool int8 = is_second("--weights", options.weights, kWeightForms);
  require_extension(options.out, onnx);
  const SavedModel saved = find_model(options.model);
  const std::string out = options.out.empty()
                              ? std::filesystem::path(saved.checkpoint).stem().string() + "." + options.format
                              : options.out;
  const Exported exported = onnx ? export_onnx(saved, out, int8) : export_safetensors(saved, out, int8);
  fmt::print("{}: {} tensors of {}, {}\n", out, exported.tensors, saved.checkpoint,
             bytes_text(static_cast<double>(exported.bytes)));
  return kExitOk;
}

}  // namespace echelon::cli
