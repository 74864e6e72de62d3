// echelon export: a trained model's weights for other programs.
#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/export.hpp"
#include "checkpoint/saved_model.hpp"
#include "cli/options.hpp"

namespace echelon::cli {

int run_export(const ExportOptions& options) {
  const SavedModel saved = find_model(options.model);
  const std::string out =
      options.out.empty() ? std::filesystem::path(saved.checkpoint).stem().string() + ".safetensors" : options.out;
  const Exported exported = export_safetensors(saved, out);
  fmt::print("{}: {} tensors of {}, {}\n", out, exported.tensors, saved.checkpoint,
             bytes_text(static_cast<double>(exported.bytes)));
  return kExitOk;
}

}  // namespace echelon::cli
