// How well the classes of a data set are mixed: over chunks, files and replicas. A shuffle mixes the records of some
// chunks at a time, and sharding by file gives each replica its files, so that both rely on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "data/label_counts.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

// The labels of a data set, by chunk; of a large one those of chunks that are evenly spread over it.
class LabelSample {
 public:
  struct Chunk {
    int file = 0;
    std::int64_t first = 0;  // record of the file
    std::size_t begin = 0;   // of its labels
    std::size_t count = 0;
  };
  // Reads at most about `most` labels, of at most `most_files` files. DataError where they cannot be read, or are no
  // class or no number that training takes (Dataset::least_label): all verbs refuse them before they begin.
  explicit LabelSample(const Dataset& dataset, std::int64_t most = 1 << 21, std::size_t most_files = 1024);

  bool empty() const { return chunks_.empty(); }
  std::int64_t classes() const { return classes_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // The labels that were read, counted.
  const LabelCounts& counts() const { return counts_; }
  bool whole() const { return whole_; }  // they are all of the set
  const std::int32_t* labels(const Chunk& chunk) const { return labels_.data() + chunk.begin; }
  // ClassMix::chunks and files, which no plan changes.
  double chunk_mix() const { return chunk_mix_; }
  double file_mix() const { return file_mix_; }

 private:
  std::int64_t classes_ = 0;
  std::vector<Chunk> chunks_;
  std::vector<std::int32_t> labels_;
  LabelCounts counts_;
  bool whole_ = false;
  double chunk_mix_ = 0, file_mix_ = 0;
};

// How much of the differences between labels lies between groups of records: 0 where groups are as alike as draws from
// all records, 1 where each group has a class of its own. It is the intraclass correlation of the labels, less what
// chance makes of it (four deviations), and 0 where it is below 0.02.
struct ClassMix {
  double chunks = 0, files = 0;
  double replicas = 0;  // 0: they read the same records
  bool known = false;   // there are labels of at least two classes
};
ClassMix class_mix(const LabelSample& sample, const SamplePlan* plan = nullptr);
// The same over the samples of replicas alone.
double replica_mix(const LabelSample& sample, const std::vector<std::vector<SamplePlan::Run>>& shares);

// "chunks 98 %, files 100 %, replicas 97 % sorted by class (0: mixed, 100: a class each)"
std::string mix_text(const ClassMix& mix);

// The chunks that a window takes to mix as well as `window` chunks whose classes are mixed.
std::int64_t window_for(double chunk_mix, std::int64_t chunk_rows, std::int64_t window);

// A line for each thing that is odd about the labels of the set: classes without a sample, labels that are more likely
// something else. None where not all were read (Dataset::label_sample).
std::vector<std::string> label_warnings(const Dataset& dataset, const std::string& location);

// A line for each thing that is wrong with the mix for this plan, with its cure.
std::vector<std::string> mix_warnings(const ClassMix& mix, const SamplePlan& plan, const Dataset& dataset,
                                      const DataConfig& config);

}  // namespace echelon::inline data
