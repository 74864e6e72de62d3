// SPDX-License-Identifier: Apache-2.0
#include "data/import/text_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/fresh_folder.hpp"
#include "data/import/import_work.hpp"
#include "data/import/row_buffer.hpp"
#include "data/import/tokens.hpp"

namespace echelon::inline data {
namespace {

namespace format = sample_format;
namespace fs = std::filesystem;

constexpr std::int64_t kTokensAShard = 1 << 26;

// Calls body(token, where) for every token of the files, line by line. `total`: number of tokens; 0 if unknown.
template <class Body>
void for_text(const std::vector<std::string>& files, TokenKind kind, std::int64_t total, Body&& body) {
  ImportWork work("tokens", total);
  std::int64_t tokens = 0;
  std::string text;
  for (const std::string& file : files) {
    ByteStream stream(file);
    std::int64_t line = 0;
    bool ended = false;
    while (stream.line(text, &ended)) {
      const std::string where = fmt::format("{}:{}", file, ++line);
      if (ended || kind == TokenKind::verbatim) text += '\n';
      work.at(tokens);
      for_tokens(text, kind, where, [&](std::string_view token) {
        ++tokens;
        body(token, where);
      });
    }
    if (line == 0) throw DataError(fmt::format("{}: is empty", file));
  }
}

// Shards in one folder.
class TokenShards {
 public:
  TokenShards(const std::string& place, std::vector<std::int64_t> sizes, const Vocabulary& vocabulary,
              const ShardOptions& options)
      : folder_(place), sizes_(std::move(sizes)), vocabulary_(vocabulary), options_(options) {}

  void append(std::int32_t token) {
    if (file_ == sizes_.size()) throw DataError("the input became longer while it was read");
    if (!writer_) begin();
    tokens_->append(token);
    if (++held_ == sizes_[file_]) end();
  }

  void publish(TextWritten& written) {
    if (file_ != sizes_.size()) throw DataError("the input became shorter while it was read");
    folder_.publish();
    for (std::size_t i = 0; i < file_; ++i) written.files.push_back(folder_.then(shard_name(options_, i)));
    written.bytes += bytes_;
  }

 private:
  void begin() {
    writer_ = std::make_unique<h5::Writer>(folder_.now(shard_name(options_, file_)));
    writer_->attribute(format::kFormat, std::string(format::kName));
    writer_->attribute(format::kFormatVersion, format::kVersion);
    writer_->attribute(format::kKind, std::string(name_of(DataKind::text)));
    vocabulary_.write(*writer_, format::kVocabulary);
    tokens_ = std::make_unique<RowBuffer<std::int32_t>>(*writer_, format::kTokens, token_type(vocabulary_.size()),
                                                        Shape{sizes_[file_]}, options_);
    held_ = 0;
  }
  void end() {
    tokens_->flush();
    writer_->publish();
    tokens_.reset();
    writer_.reset();
    bytes_ += fs::file_size(folder_.now(shard_name(options_, file_)));
    ++file_;
  }

  FreshFolder folder_;
  std::vector<std::int64_t> sizes_;
  const Vocabulary& vocabulary_;
  const ShardOptions& options_;
  std::unique_ptr<h5::Writer> writer_;
  std::unique_ptr<RowBuffer<std::int32_t>> tokens_;
  std::int64_t held_ = 0;  // tokens in the open shard
  std::size_t file_ = 0;   // complete shards
  std::uint64_t bytes_ = 0;
};

TokenKind kind_of(const TextRequest& request) {
  const TokenKind kind = token_kind_of(request, request.format == "words" ? "words" : "characters");
  if (request.format == "words" && !of_words(kind))
    throw ConfigError(
        fmt::format("words are always tokens of their own; for --tokens {} import it as text", request.tokens));
  return kind;
}

// The shortest window is a token and its successor.
void require_windows(const std::string& input, std::int64_t tokens, std::int64_t held, const ShardOptions& options) {
  const auto require = [&](std::int64_t size, const std::string& what) {
    if (size < 2)
      throw ConfigError(fmt::format("{}: {} would hold {}; at least two are needed, one to read and the one after it",
                                    input, what, counted(size, "token")));
  };
  if (held > 0) require(held, "the part held out for testing");
  const std::vector<std::int64_t> sizes = shard_sizes(tokens - held, options);
  require(*std::min_element(sizes.begin(), sizes.end()), sizes.size() > 1 ? "a shard" : "the training part");
}

// A vocabulary of words counts only the words of the training part.
Vocabulary vocabulary_for(const TextRequest& request, TokenKind kind, const TokenCounts& all, std::int64_t tokens,
                          std::int64_t held) {
  if (!request.like.empty()) return vocabulary_of_set(request.like);
  if (!of_words(kind) || held == 0) return all.vocabulary(kind, request.vocabulary);
  TokenCounts counts;
  std::int64_t index = 0;
  for_text(request.inputs, kind, tokens, [&](std::string_view token, const std::string&) {
    if (index++ < tokens - held) counts.add(token);
  });
  return counts.vocabulary(kind, request.vocabulary);
}

}  // namespace

TextWritten write_token_shards(const TextRequest& request, const ShardOptions& given) {
  ShardOptions options = given;
  if (options.shards == 0 && options.unequal.empty() && options.samples_per_shard == 0)
    options.samples_per_shard = kTokensAShard;
  check_options(options);
  const ImportFolders folders = free_folders(options);
  const TokenKind kind = kind_of(request);

  TokenCounts counts;
  std::int64_t tokens = 0;
  for_text(request.inputs, kind, 0, [&](std::string_view token, const std::string&) {
    counts.add(token);
    ++tokens;
  });
  if (tokens < 2)
    throw DataError(fmt::format("{}: holds {}; at least two are needed, one to read and the one after it",
                                request.inputs.front(), tokens == 0 ? "no token" : "one token"));
  const std::int64_t held = held_out_of(tokens, options);
  require_windows(request.inputs.front(), tokens, held, options);
  const Vocabulary vocabulary = vocabulary_for(request, kind, counts, tokens, held);

  TextWritten written{.files = {}, .tokens = tokens - held, .held_out = held, .vocabulary = vocabulary.size()};
  const std::int32_t unknown = vocabulary.find(kUnknownToken);
  TokenShards train(folders.train, shard_sizes(tokens - held, options), vocabulary, options);
  std::unique_ptr<TokenShards> test;
  if (held > 0)
    test = std::make_unique<TokenShards>(folders.test, std::vector<std::int64_t>{held}, vocabulary, options);
  std::int64_t index = 0;
  for_text(request.inputs, kind, tokens, [&](std::string_view token, const std::string& where) {
    const std::int32_t id = vocabulary.id(token);
    if (id < 0)
      throw DataError(fmt::format("{}: '{}' is not in the vocabulary that --like names", where, token_text(token)));
    if (id == unknown) ++written.unknown;
    (index++ < tokens - held ? train : *test).append(id);
  });
  if (test) test->publish(written);
  train.publish(written);
  return written;
}

}  // namespace echelon::inline data
