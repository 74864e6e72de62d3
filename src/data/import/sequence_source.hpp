// SPDX-License-Identifier: Apache-2.0
// Sources of sequences and pairs, one file per format. They are read twice, like other sources (source.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "data/import/csv_table.hpp"
#include "data/import/tokens.hpp"
#include "data/passed_over.hpp"

namespace echelon::inline data {

struct SequenceInfo {
  DataKind kind = DataKind::sequences;     // or pairs
  std::int64_t features = 0;               // numbers per step; 0: tokens
  Vocabulary vocabulary{};                 // for tokens
  Vocabulary target_vocabulary{};          // for pairs
  std::vector<std::string> class_names{};  // for sequences
  bool step_labels = false;                // sequences: a class for each step
  std::vector<double> mean{}, std{};       // by feature, of the set given by --like; empty: measured
  std::string heading{};                   // .csv: the line taken for column names
  std::vector<PassedOver> passed{};        // for a folder: files that do not belong to a class
};

struct SequenceRecord {
  std::vector<std::int32_t> tokens;  // (steps), or
  std::vector<float> values;         // (steps, features)
  std::vector<std::int32_t> target;  // pairs: without start and end token
  std::int32_t label = 0;
  std::vector<std::int32_t> labels{};  // (steps), if each step has one

  std::int64_t steps(std::int64_t features) const {
    return static_cast<std::int64_t>(features > 0 ? values.size() / static_cast<std::size_t>(features) : tokens.size());
  }
};

class SequenceSource {
 public:
  virtual ~SequenceSource() = default;
  virtual const SequenceInfo& info() const = 0;
  virtual void rewind() = 0;  // to the first record
  // Reads the next record; returns false at the end. Throws DataError with file:line.
  virtual bool next(SequenceRecord& record) = 0;
};

struct TextRequest {
  std::string format{};               // text | words | sequences | pairs
  std::vector<std::string> inputs{};  // files, gzip recognised by content; sequences: or a folder
  std::string tokens{};  // characters | bytes | words | verbatim; "": words for `words` and `pairs`, else characters
  std::int64_t vocabulary = 0;  // words: largest vocabulary; 0: 10,000 (verbatim: all)
  std::string like{};           // a set whose vocabulary, classes and scaling are reused; "": counted and measured
  Heading heading = Heading::automatic;  // sequences: for a .csv file
  bool step_labels = false;              // sequences: the same, a label for each step
};
// Returns the kind of tokens of a request; `usual` if `tokens` is empty. Throws ConfigError for --vocabulary with kinds
// other than words.
TokenKind token_kind_of(const TextRequest& request, const char* usual);

// Throws ConfigError if the inputs or options do not fit the format.
std::unique_ptr<SequenceSource> open_sequences(const TextRequest& request);

// One function per form of input; open_sequences chooses among them.
std::unique_ptr<SequenceSource> open_ts(const std::string& path);
std::unique_ptr<SequenceSource> open_steps_csv(const std::string& path, Heading heading, bool step_labels);
std::unique_ptr<SequenceSource> open_labelled_lines(const TextRequest& request);
std::unique_ptr<SequenceSource> open_pairs(const TextRequest& request);

}  // namespace echelon::inline data
