// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_text.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "checkpoint/trained_data.hpp"
#include "cli/choice.hpp"
#include "data/token_text.hpp"
#include "inference/sampler.hpp"
#include "inference/translate.hpp"

namespace echelon::cli {
namespace {

bool is_int8(const PredictOptions& options) { return is_second("--weights", options.weights, kWeightForms); }

// A model and the data set whose vocabulary it uses: all that writing from a prompt needs.
struct Writer {
  SavedModel saved;
  Dataset data;
  std::unique_ptr<Device> device;
};

Dataset open_vocabulary(const SavedModel& saved, const std::string& given) {
  const std::string location = given.empty() ? saved.config.data.train : given;
  try {
    Dataset data = open_dataset(location, saved.config.data, Labels::optional);
    see_as_trained(data, trained_data_in(saved.checkpoint), saved.checkpoint);
    return data;
  } catch (const Error& error) {
    if (!given.empty() || error.code() == kExitInternal) throw;
    throw Error(
        error.code(),
        fmt::format("{}; the vocabulary is that of data.train: if the data were moved, give their path after the model",
                    error.what()));
  }
}

// Opens the device that the options choose. A device that computes nothing cannot write text.
std::unique_ptr<Device> open_writing_device(const PredictOptions& options, const DeviceConfig& config,
                                            const HostSlot& slot) {
  auto device = open_device_for(config, options.device, options.threads, slot);
  if (!device->computes())
    throw ConfigError(
        fmt::format("device {} computes no values and cannot write text: give --device onednn", device->name()));
  return device;
}

Writer open_writer(const PredictOptions& options, const HostSlot& slot) {
  SavedModel saved = find_model(options.model);
  saved.config.evaluate.batch = options.batch;
  Dataset data = open_vocabulary(saved, options.data);
  auto device = open_writing_device(options, saved.config.device, slot);
  return {std::move(saved), std::move(data), std::move(device)};
}

void require_kind(const Dataset& data, DataKind kind, const char* option, const char* other) {
  if (data.kind == kind) return;
  throw ConfigError(fmt::format("{} is for models of {}, but this one was trained on {}{}", option, name_of(kind),
                                name_of(data.kind), other));
}

std::string prompt_of(const PredictOptions& options) {
  return options.prompt_file.empty() ? options.prompt : read_file_whole(options.prompt_file);
}
std::string prompt_place(const PredictOptions& options) {
  return options.prompt_file.empty() ? "--prompt" : options.prompt_file;
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Prints text as it is generated, to standard output and a file.
class TextOutput {
 public:
  explicit TextOutput(std::string file) : file_(std::move(file)) {}
  void add(const std::string& text) {
    print_text(text);
    if (!file_.empty()) all_ += text;
  }
  void finish() const {
    if (!file_.empty()) write_file_whole(file_, all_);
  }

 private:
  std::string file_, all_;
};

void print_note(const std::string& note) { fmt::print(stderr, "echelon: {}\n", note); }

// The tokens before the first new one: the prompt or, without one, the end of a line.
std::vector<std::int32_t> first_tokens(const std::string& prompt, const Dataset& data, TokenKind kind,
                                       const std::string& where) {
  std::vector<std::int32_t> tokens = tokens_of(prompt, data.vocabulary, kind, where);
  if (!tokens.empty()) return tokens;
  if (const std::int32_t line_end = data.vocabulary.find("\n"); line_end >= 0) return {line_end};
  throw ConfigError("the vocabulary has no token for the end of a line, after which a text could begin: give --prompt");
}

void generate(const PredictOptions& options, const HostSlot& slot) {
  Writer writer = open_writer(options, slot);
  require_kind(writer.data, DataKind::text, "--generate",
               writer.data.kind == DataKind::pairs ? "; --beam 4 translates" : "");
  const TokenKind kind = token_kind_in(writer.data.vocabulary);
  const std::string prompt = prompt_of(options);
  const std::vector<std::int32_t> begin = first_tokens(prompt, writer.data, kind, prompt_place(options));
  const auto model = load_step_model(writer.saved, writer.data.form(), *writer.device, {.int8 = is_int8(options)});
  const double start = now_s();
  TextOutput output(options.out);
  output.add(prompt);
  bool joined = prompt.empty() || prompt.back() == '\n';  // no blank before the next word
  continue_text(*model, begin, options.generate,
                {.temperature = options.temperature, .top_k = options.top_k, .seed = options.seed},
                [&](std::int32_t token) {
                  const std::string& entry = writer.data.vocabulary[token];
                  output.add(of_words(kind) && !joined && entry != "\n" ? " " + entry : entry);
                  joined = entry == "\n";
                });
  output.add("\n");
  output.finish();
  const double seconds = now_s() - start;
  print_note(fmt::format("{} at step {}: {} in {}, {}/s", writer.saved.checkpoint, writer.saved.step,
                         counted(options.generate, "token"), seconds_text(seconds),
                         rate_text(static_cast<double>(options.generate) / seconds)));
}

TranslateOptions translate_options(const PredictOptions& options, const Dataset& data, Engine* ranks) {
  const Vocabulary& target = data.target_vocabulary;
  return {.beam = {.beams = options.beam > 0 ? options.beam : 1,
                   .length_penalty = options.length_penalty,
                   .longest = options.max_length > 0 ? options.max_length : data.target_length - 1,
                   .start = target.find(kStartToken),
                   .end = target.find(kEndToken)},
          .int8 = is_int8(options),
          .ranks = ranks};
}

std::string line_of(const std::vector<std::int32_t>& tokens, const Dataset& data) {
  return text_from(tokens, data.target_vocabulary, token_kind_in(data.target_vocabulary)) + "\n";
}

// Reads one source per line.
std::vector<std::vector<std::int32_t>> sources_of(const PredictOptions& options, const Dataset& data) {
  const std::string text = prompt_of(options);
  const TokenKind kind = token_kind_in(data.vocabulary);
  std::vector<std::vector<std::int32_t>> sources;
  std::string_view left = text;
  while (!left.empty()) {
    const std::string where = fmt::format("{}:{}", prompt_place(options), sources.size() + 1);
    const std::size_t end = std::min(left.find('\n'), left.size());
    sources.push_back(tokens_of(left.substr(0, end), data.vocabulary, kind, where));
    if (sources.back().empty()) throw DataError(where + ": holds no token to translate");
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  if (sources.empty()) throw DataError(prompt_place(options) + ": holds no text to translate");
  return sources;
}

void translate_prompt(const PredictOptions& options, const HostSlot& slot) {
  Writer writer = open_writer(options, slot);
  require_kind(writer.data, DataKind::pairs, "--beam",
               writer.data.kind == DataKind::text ? "; --generate 200 continues a text" : "");
  TextOutput output(options.out);
  for (const auto& text : translate_lines(writer.saved, writer.data, *writer.device, sources_of(options, writer.data),
                                          translate_options(options, writer.data, nullptr)))
    output.add(line_of(text, writer.data));
  output.finish();
}

}  // namespace

int run_generate(const PredictOptions& options) {
  return on_ranks([&](Engine* engine) {
    const JointRanks ranks(engine);
    ranks.together([&] {
      if (ranks.reports()) generate(options, ranks.slot);
    });
    return static_cast<int>(kExitOk);
  });
}

int run_translate(const PredictOptions& options) {
  return on_ranks([&](Engine* engine) {
    const JointRanks ranks(engine);
    if (!options.prompt.empty() || !options.prompt_file.empty()) {
      ranks.together([&] {
        if (ranks.reports()) translate_prompt(options, ranks.slot);
      });
      return static_cast<int>(kExitOk);
    }
    std::optional<OpenedData> opened;
    std::unique_ptr<Device> device;
    TranslateOptions asked;
    ranks.together([&] {
      opened.emplace(open_data({.model = options.model,
                                .data = options.data,
                                .device = options.device,
                                .threads = options.threads,
                                .batch = options.batch}));
      require_kind(opened->data, DataKind::pairs, "--beam", "");
      device = open_writing_device(options, opened->saved.config.device, ranks.slot);
      asked = translate_options(options, opened->data, engine);
      step_graphs(opened->saved.config.model, opened->data.form());
    });
    asked.texts = true;
    const Translations found = translate(opened->saved, opened->data, *device, asked);
    ranks.together([&] {
      if (!ranks.reports()) return;
      TextOutput output(options.out);
      for (const auto& text : found.texts) output.add(line_of(text, opened->data));
      output.finish();
      print_note(fmt::format("{} at step {}: {}, beam {}, BLEU {}", opened->saved.checkpoint, opened->saved.step,
                             counted(std::ssize(found.texts), "translation"), asked.beam.beams, found.bleu.text()));
    });
    return static_cast<int>(kExitOk);
  });
}

std::string bleu_line(OpenedModel& opened, const PredictOptions& options, const JointRanks& ranks) {
  if (opened.data.kind != DataKind::pairs) {
    if (options.beam > 0) require_kind(opened.data, DataKind::pairs, "--beam", "");
    return {};
  }
  try {
    step_graphs(opened.saved.config.model, opened.data.form());
  } catch (const ConfigError&) {
    if (options.beam > 0) throw;
    return {};
  }
  const TranslateOptions asked = translate_options(options, opened.data, ranks.engine);
  const Translations found = translate(opened.saved, opened.data, opened.model.device(), asked);
  return fmt::format("BLEU     {}, beam {}\n", found.bleu.text(), asked.beam.beams);
}

}  // namespace echelon::cli
