// SPDX-License-Identifier: Apache-2.0
// Measures how well the classes of a data set are mixed over chunks, files and replicas. Training relies on this: a
// shuffle mixes the records of only some chunks at a time, and sharding by file gives each replica its own files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "data/label_counts.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

// The labels of a data set, by chunk. For a large set, only the labels of chunks that are evenly spread over it.
class LabelSample {
 public:
  struct Chunk {
    int file = 0;
    std::int64_t first = 0;  // index of the first record in the file
    std::size_t begin = 0;   // index of its first label in labels_
    std::size_t count = 0;
  };
  // Reads at most about `most` labels, of dense ones 8 times as many, from at most `most_files` files. Dense labels and
  // those of steps are counted only. Throws DataError if labels cannot be read, or if
  // one is not a valid class or number (Dataset::least_label), so that every verb refuses them before it begins.
  explicit LabelSample(const Dataset& dataset, std::int64_t most = 1 << 21, std::size_t most_files = 1024);

  bool empty() const { return chunks_.empty(); }
  std::int64_t classes() const { return classes_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // Counts of the labels that were read.
  const LabelCounts& counts() const { return counts_; }
  // Numbers of labels that are not ignored, by class up to the greatest one that occurs.
  const std::vector<std::int64_t>& class_counts() const { return class_counts_; }
  bool whole() const { return whole_; }  // the labels of the whole set were read
  const std::int32_t* labels(const Chunk& chunk) const { return labels_.data() + chunk.begin; }
  // ClassMix::chunks and files, which are the same for every plan.
  double chunk_mix() const { return chunk_mix_; }
  double file_mix() const { return file_mix_; }

 private:
  void add(std::int32_t label);
  void read_steps(const Dataset& dataset, std::int64_t most, std::size_t most_files);

  std::int64_t classes_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<std::int32_t> labels_;
  LabelCounts counts_;
  std::vector<std::int64_t> class_counts_;
  bool whole_ = false;
  double chunk_mix_ = 0, file_mix_ = 0;
};

// How much of the variation of labels lies between groups of records: 0 if groups differ no more than random draws from
// all records, 1 if each group has a class of its own. It is the intraclass correlation of the labels, less what chance
// explains (four standard deviations), and 0 if it is below 0.02.
struct ClassMix {
  double chunks = 0, files = 0;
  double replicas = 0;  // 0 if they read the same records
  bool known = false;   // there are labels of at least two classes
};
ClassMix class_mix(const LabelSample& sample, const SamplePlan* plan = nullptr);
// The same over the samples of replicas only.
double replica_mix(const LabelSample& sample, const std::vector<std::vector<SamplePlan::Run>>& shares);

// "chunks 98 %, files 100 %, replicas 97 % sorted by class (0: mixed, 100: a class each)"
std::string mix_text(const ClassMix& mix);

// Returns the number of chunks in a window that mixes as well as `window` chunks with mixed classes.
std::int64_t window_for(double chunk_mix, std::int64_t chunk_rows, std::int64_t window);

// Returns a line for each oddity in the labels of the set: classes without a sample, labels that are more likely
// something else. None unless all labels were read (Dataset::label_sample).
std::vector<std::string> label_warnings(const Dataset& dataset, const std::string& location);

// Returns a line for each problem of the mix with this plan, with advice.
std::vector<std::string> mix_warnings(const ClassMix& mix, const SamplePlan& plan, const Dataset& dataset,
                                      const DataConfig& config);

}  // namespace echelon::inline data
