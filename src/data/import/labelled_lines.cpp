// SPDX-License-Identifier: Apache-2.0
// A folder with one text file per class, <class>.txt, and one sequence of tokens per line. Lines are returned in a
// fixed random order, because training shuffles only samples that are close to each other.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "data/import/byte_stream.hpp"
#include "data/import/sequence_source.hpp"
#include "data/import/tokens.hpp"

namespace echelon::inline data {
namespace {

namespace fs = std::filesystem;

class LabelledLines final : public SequenceSource {
 public:
  explicit LabelledLines(const TextRequest& request) : kind_(token_kind_of(request, "characters")) {
    const std::string& folder = request.inputs[0];
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code unreadable;
      const std::string name = entry->path().filename().string();
      const std::string kind = entry->is_directory(unreadable) ? "folder" : kind_of_file(name);
      if (kind == ".txt file")
        files.push_back(entry->path());
      else
        pass_over(info_.passed, kind, entry->path().string());
    }
    if (error) throw DataError(fmt::format("{}: the folder cannot be read: {}", folder, error.message()));
    std::sort(files.begin(), files.end());
    if (files.size() < 2)
      throw DataError(fmt::format("{}: holds {} .txt file{}; at least two are needed, one for each class", folder,
                                  files.size(), files.size() == 1 ? "" : "s"));
    TokenCounts counts;
    for (const fs::path& file : files) read_class(file, counts);
    info_.vocabulary =
        request.like.empty() ? counts.vocabulary(kind_, request.vocabulary) : vocabulary_of_set(request.like);
    mix();
  }

  const SequenceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }

  bool next(SequenceRecord& record) override {
    if (next_ == lines_.size()) return false;
    const Line& line = lines_[next_++];
    record.label = line.label;
    record.tokens.clear();
    for_tokens(line.text, kind_, "", [&](std::string_view token) {
      record.tokens.push_back(info_.vocabulary.id(token));
      if (record.tokens.back() < 0)
        throw DataError(fmt::format("{}: '{}' in '{}' is not in the vocabulary that --like names",
                                    info_.class_names[static_cast<std::size_t>(line.label)], token_text(token),
                                    line.text.substr(0, 40)));
    });
    return true;
  }

 private:
  struct Line {
    std::string text;
    std::int32_t label;
  };

  void read_class(const fs::path& file, TokenCounts& counts) {
    const auto label = static_cast<std::int32_t>(info_.class_names.size());
    info_.class_names.push_back(file.stem().string());
    ByteStream stream(file.string());
    std::string text;
    const std::size_t before = lines_.size();
    for (std::int64_t line = 1; stream.line(text); ++line) {
      std::int64_t tokens = 0;
      for_tokens(text, kind_, fmt::format("{}:{}", file.string(), line), [&](std::string_view token) {
        counts.add(token);
        ++tokens;
      });
      if (tokens > 0) lines_.push_back({text, label});
    }
    if (lines_.size() == before) throw DataError(fmt::format("{}: holds no sequence", file.string()));
  }

  void mix() {
    const HashRng draws(1, "labelled lines");
    for (std::size_t i = lines_.size(); i > 1; --i) std::swap(lines_[i - 1], lines_[draws.below(i, i)]);
  }

  TokenKind kind_;
  SequenceInfo info_;
  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<SequenceSource> open_labelled_lines(const TextRequest& request) {
  return std::make_unique<LabelledLines>(request);
}

}  // namespace echelon::inline data
