#include "data/import/sequence_source.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"

namespace echelon {
namespace {

// "vowels.ts.gz" -> ".ts"
std::string extension_of(const std::string& path) {
  std::filesystem::path file(path);
  if (file.extension() == ".gz") file = file.stem();
  return file.extension().string();
}

}  // namespace

std::unique_ptr<SequenceSource> open_sequences(const TextRequest& request) {
  if (request.inputs.size() != 1)
    throw ConfigError(fmt::format("{} takes one input; {} given", request.format, request.inputs.size()));
  const std::string& input = request.inputs[0];
  if (request.format == "pairs") return open_pairs(request);
  if (std::filesystem::is_directory(input)) return open_labelled_lines(request);
  if (!request.tokens.empty() || !request.like.empty() || request.vocabulary > 0)
    throw ConfigError(
        fmt::format("--tokens, --vocabulary and --like are for text, but {} is a file of numbers", input));
  const std::string extension = extension_of(input);
  if (extension == ".ts") return open_ts(input);
  if (extension == ".csv") return open_steps_csv(input);
  throw ConfigError(fmt::format(
      "{}: sequences come from a .ts file, a .csv file with one step a line, or a folder with one .txt file "
      "a class and one sequence a line",
      input));
}

}  // namespace echelon
