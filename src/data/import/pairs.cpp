// SPDX-License-Identifier: Apache-2.0
// Pairs of texts, one per line: source, a tab, target. Each side has a vocabulary of its own; the target's also holds
// the tokens <s> and </s>, which begin and end a decoder's output.
#include <fmt/format.h>

#include "base/error.hpp"
#include "data/format.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/sequence_source.hpp"
#include "data/import/tokens.hpp"
#include "data/location.hpp"
#include "h5/file.hpp"

namespace echelon::inline data {
namespace {

class Pairs final : public SequenceSource {
 public:
  explicit Pairs(const TextRequest& request) : stream_(request.inputs[0]), kind_(token_kind_of(request, "words")) {
    info_.kind = DataKind::pairs;
    TokenCounts source, target;
    bool any = false;
    while (read_line()) {
      any = true;
      count(source_, source, "source");
      count(target_, target, "target");
    }
    if (!any) fail("holds no pair");
    if (request.like.empty()) {
      info_.vocabulary = source.vocabulary(kind_, request.vocabulary);
      info_.target_vocabulary = target.vocabulary(kind_, request.vocabulary, {kStartToken, kEndToken});
    } else {
      const h5::Reader reader(files_at(request.like).front());
      info_.vocabulary = Vocabulary::read(reader, sample_format::kVocabulary);
      info_.target_vocabulary = Vocabulary::read(reader, sample_format::kTargetVocabulary);
    }
    Pairs::rewind();
  }

  const SequenceInfo& info() const override { return info_; }

  void rewind() override {
    stream_.rewind();
    line_ = 0;
  }

  bool next(SequenceRecord& record) override {
    if (!read_line()) return false;
    number(source_, info_.vocabulary, record.tokens);
    number(target_, info_.target_vocabulary, record.target);
    return true;
  }

 private:
  std::string place() const { return fmt::format("{}:{}", stream_.path(), line_); }
  [[noreturn]] void fail(const std::string& what) const { throw DataError(fmt::format("{}: {}", place(), what)); }

  void count(std::string_view text, TokenCounts& counts, const char* side) const {
    bool any = false;
    for_tokens(text, kind_, place(), [&](std::string_view token) {
      counts.add(token);
      any = true;
    });
    if (!any) fail(fmt::format("the {} holds no token", side));
  }

  // Reads the next non-empty line into source_ and target_.
  bool read_line() {
    do {
      if (!stream_.line(text_)) return false;
      ++line_;
    } while (text_.empty());
    const std::string_view text = text_;
    const auto tab = text.find('\t');
    if (tab == std::string_view::npos || text.find('\t', tab + 1) != std::string_view::npos)
      fail(fmt::format("{} tab, expected one: source, a tab, target",
                       tab == std::string_view::npos ? "no" : "more than one"));
    source_ = text.substr(0, tab);
    target_ = text.substr(tab + 1);
    return true;
  }

  void number(std::string_view text, const Vocabulary& vocabulary, std::vector<std::int32_t>& ids) {
    ids.clear();
    for_tokens(text, kind_, place(), [&](std::string_view token) {
      ids.push_back(vocabulary.id(token));
      if (ids.back() < 0) fail(fmt::format("'{}' is not in the vocabulary that --like names", token_text(token)));
    });
  }

  ByteStream stream_;
  TokenKind kind_;
  SequenceInfo info_;
  std::int64_t line_ = 0;
  std::string text_;
  std::string_view source_, target_;  // parts of text_
};

}  // namespace

std::unique_ptr<SequenceSource> open_pairs(const TextRequest& request) { return std::make_unique<Pairs>(request); }

}  // namespace echelon::inline data
