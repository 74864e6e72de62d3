// SPDX-License-Identifier: Apache-2.0
// [data.hdf5]: how HDF5 files that are not shards of echelon (data/README.md) are read as they lie (data/HDF5.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

enum class LabelForm : std::uint8_t { automatic, classes, column, one_hot, values, dense, steps };
enum class Transform : std::uint8_t { none, log1p };
enum class StatisticsAre : std::uint8_t { mean_std, range };
enum class Missing : std::uint8_t { refuse, mean };
enum class Encoded : std::uint8_t { none, rgb, grey };

struct Hdf5Config {
  std::vector<std::string> samples;      // paths of datasets in a file, joined along channels; empty: files are shards
  std::string axes = "NCHW";             // their axes: N sample, C or F channel, D slice, H row, W column, T time step
  Encoded encoded = Encoded::none;       // "none" | "rgb" | "grey": rows are the bytes of JPEG or PNG files, decoded so
  std::string lengths;                   // path of the bytes of each row (encoded), or steps of each series; "": all
  std::vector<std::int64_t> channels;    // channels that are used, by index over all `samples`; empty: all
  std::string labels;                    // path of the labels; "": none (predict only)
  std::vector<std::string> labels_file;  // ending of the file of samples, ending of the file that has its labels
  LabelForm label_form = LabelForm::automatic;  // "auto" | "class" | "column" | "one_hot" | "values" | "dense" |
                                                // "steps"
  std::int64_t label_column = 0;                // label_form "column": which one
  std::int64_t classes = 0;                     // number of classes; 0: labels are numbers, or one_hot says it
  std::vector<std::string> class_names;         // by class; may be empty
  std::int64_t lead = 0;                        // record i has the label of record i + lead: a forecast
  double label_mean = 0, label_std = 1;         // numbers to be predicted become (number - mean) / std
  std::string weights;                          // path of a weight of each sample; "": all 1
  std::vector<std::int64_t> rows;          // first row and the one after the last, of each file of training; empty: all
  std::vector<std::int64_t> test_rows;     // the same of data.test
  std::string split;                       // name in the attribute `split` of Fuel, of data.train; "": all rows
  std::string test_split;                  // the same of data.test
  Transform transform = Transform::none;   // "none" | "log1p": ln(1 + value)
  Missing missing = Missing::refuse;       // NaN and fill values: "refuse" | "mean" (the channel's mean)
  double scale = 0;                        // factor on values; 0: 1/255 for 8-bit values with mean and std, else 1
  std::vector<double> mean, std;           // of value * scale; one number, or one a channel; empty: 0 and 1
  std::vector<double> range;               // values from the first number to the second become 0 to 1
  std::string statistics;                  // HDF5 file with numbers a channel, of stored values
  std::vector<std::string> statistics_of;  // paths of two datasets in it
  StatisticsAre statistics_are = StatisticsAre::mean_std;  // "mean_std" | "range" (least and greatest)

  bool operator==(const Hdf5Config&) const = default;
  bool used() const { return !samples.empty(); }
  bool holds_files() const { return encoded != Encoded::none; }

  // The same for the files of data.test.
  Hdf5Config of_test() const {
    Hdf5Config test = *this;
    test.rows = test_rows;
    test.split = test_split;
    return test;
  }
  // Two of these keys that exclude each other.
  std::optional<Misfit> misfit() const;
};

}  // namespace echelon::inline config
