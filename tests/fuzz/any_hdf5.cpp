// SPDX-License-Identifier: Apache-2.0
// Reads damaged files as [data.hdf5] describes them, and proposes a table for them. An input is a byte, the number of
// the keys, and the file.
#include <array>

#include "data/chunk_cache.hpp"
#include "data/dataset.hpp"
#include "data/foreign_guess.hpp"
#include "tests/fuzz/foreign_files.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"

namespace echelon::fuzz {
namespace {

std::array<Hdf5Config, 4> some_keys() {
  Hdf5Config images;
  images.samples = {"images"};
  images.axes = "NHWC";
  images.labels = "table";
  images.missing = Missing::mean;
  images.weights = "weights";
  Hdf5Config train = images, column = images, one;
  train.split = "train";
  train.channels = {1};
  column.label_form = LabelForm::column;
  column.classes = 4;
  column.rows = {3, 20};
  one.samples = {"table"};
  one.axes = "TF";
  return {images, train, column, one};
}

class AnyHdf5 final : public Target {
 public:
  explicit AnyHdf5(const Place& place) : path_(place.folder + "/any.h5") {
    for (const int chunk : {0, 8}) {
      write_any_hdf5(path_, chunk);
      files_.push_back(read_plain(path_));
    }
  }

  std::string draw(Draws& draws) override {
    return static_cast<char>(draws.below(256)) + mutate_bytes(files_[draws.below(files_.size())], files_, draws);
  }

  bool take(const std::string& input) override {
    if (input.empty()) return false;
    write_plain(path_, input.substr(1));
    const Hdf5Config& keys = keys_[static_cast<unsigned char>(input[0]) % keys_.size()];
    const bool accepted = refused_with({kExitData}, [&] {
      const Dataset set = open_dataset(path_, 0, Labels::optional, keys);
      ChunkCache records(set, 1 << 20);
      for (std::int64_t id = 0; id < set.samples(); ++id) (void)records.record(id);
    });
    (void)refused_with({kExitData}, [&] {
      const h5::Reader file(path_);
      (void)guess_foreign(file, file.datasets(), false);
    });
    return accepted;
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
  std::array<Hdf5Config, 4> keys_ = some_keys();
};

}  // namespace

std::unique_ptr<Target> make_any_hdf5(const Place& place) { return std::make_unique<AnyHdf5>(place); }

}  // namespace echelon::fuzz
