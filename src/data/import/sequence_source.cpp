// SPDX-License-Identifier: Apache-2.0
#include "data/import/sequence_source.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "data/import/like.hpp"

namespace echelon::inline data {
namespace {

// "vowels.ts.gz" -> ".ts"
std::string extension_of(const std::string& path) {
  std::filesystem::path file(path);
  if (file.extension() == ".gz") file = file.stem();
  return file.extension().string();
}

std::unique_ptr<SequenceSource> open_series(const TextRequest& request) {
  const std::string& input = request.inputs[0];
  if (!request.tokens.empty() || request.vocabulary > 0)
    throw ConfigError(fmt::format("--tokens and --vocabulary are for text, but {} is a file of numbers", input));
  const std::string extension = extension_of(input);
  if (extension == ".csv") return open_steps_csv(input, request.heading, request.step_labels);
  if (request.heading != Heading::automatic || request.step_labels)
    throw ConfigError(
        fmt::format("{} is for .csv files, not {}", request.step_labels ? "--step-labels" : "--heading", input));
  if (extension == ".ts") return open_ts(input);
  throw ConfigError(fmt::format(
      "{}: sequences come from a .ts file, a .csv file with one step a line, or a folder with one .txt file "
      "a class and one sequence a line",
      input));
}

}  // namespace

TokenKind token_kind_of(const TextRequest& request, const char* usual) {
  const TokenKind kind = token_kind_of(request.tokens.empty() ? usual : request.tokens);
  if (!of_words(kind) && request.vocabulary > 0)
    throw ConfigError("--vocabulary is for words; all characters and bytes are kept");
  if (request.vocabulary > 0 && !request.like.empty())
    throw ConfigError("--vocabulary counts words, but --like takes the words of another set: give only one of the two");
  return kind;
}

std::unique_ptr<SequenceSource> open_sequences(const TextRequest& request) {
  if (request.inputs.size() != 1)
    throw ConfigError(fmt::format("{} takes one input; {} given", request.format, request.inputs.size()));
  const std::string& input = request.inputs[0];
  if (request.format == "pairs") return open_pairs(request);
  std::error_code unreadable;  // the reader of the file reports the reason
  const bool folder = std::filesystem::is_directory(input, unreadable);
  if (folder && request.heading != Heading::automatic) throw ConfigError("--heading is for .csv files");
  if (folder && request.step_labels) throw ConfigError("--step-labels is for .csv files");
  auto source = folder ? open_labelled_lines(request) : open_series(request);
  return request.like.empty() ? std::move(source) : source_like(std::move(source), request.like);
}

}  // namespace echelon::inline data
