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

int run_export(const ExportOptions& options) {
  const bool onnx = is_second("--format", options.format, {"safetensors", "onnx"});
  const bool int8 = is_second("--weights", options.weights, kWeightForms);
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
