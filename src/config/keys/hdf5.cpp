// SPDX-License-Identifier: Apache-2.0
// [data.hdf5]
#include "config/keys/section.hpp"

namespace echelon::inline config::keys {

void add_hdf5(Table& all) {
  Section<Config, Hdf5Config> files(all, "data.hdf5", [](Config& config) -> Hdf5Config& { return config.data.hdf5; });
  files.younger();
  files.key("samples", &Hdf5Config::samples, filled_text(),
            "paths of the datasets that hold the samples, joined along channels; empty: files are shards of echelon");
  files.key("axes", &Hdf5Config::axes, filled_text(),
            "a letter for each axis of samples: N sample, C or F channel, D slice, H row, W column, T time step; "
            "without N a file is one sample");
  files.key("encoded", &Hdf5Config::encoded, words({"none", "rgb", "grey"}),
            "rgb, grey: each row is the bytes of a JPEG or PNG file, decoded to three channels or one");
  files.key("lengths", &Hdf5Config::lengths, text(),
            "rows that are filled up: path of the number of bytes (encoded) or time steps of each");
  files.key("channels", &Hdf5Config::channels, range(0, 1e6), "channels that are used, by index; empty: all");
  files.key("labels", &Hdf5Config::labels, text(), "path of the dataset of labels; empty: none, for predict only");
  files.key("labels_file", &Hdf5Config::labels_file, filled_text(),
            "labels in files of their own: ending of the file of samples, ending of the file of labels");
  files.key(
      "label_form", &Hdf5Config::label_form, words({"auto", "class", "column", "one_hot", "values", "dense", "steps"}),
      "class: numbers of classes; column: one column of a table; one_hot: a column a class; values: numbers to "
      "be predicted; dense: a class for each place of a sample; steps: a class or numbers for each time step; auto: "
      "class if classes is set, else values");
  files.key("label_column", &Hdf5Config::label_column, range(0, 1e9), "label_form column: index of the column");
  files.key("classes", &Hdf5Config::classes, range(0, 16777216), "number of classes; 0: labels are numbers");
  files.key("class_names", &Hdf5Config::class_names, filled_text(), "names by class, for tables; may be empty");
  files.key("lead", &Hdf5Config::lead, range(0, 1e9), "record i has the label of record i + lead: a forecast");
  files.key("label_mean", &Hdf5Config::label_mean, range(-1e15, 1e15),
            "numbers to be predicted become (number - label_mean) / label_std");
  files.key("label_std", &Hdf5Config::label_std, range(1e-300, 1e15), "see label_mean");
  files.key("weights", &Hdf5Config::weights, text(), "path of the dataset of sample weights; empty: all 1");
  files.key("rows", &Hdf5Config::rows, range(0, kHuge),
            "rows of each file of data.train: the first, and the one after the last; empty: all");
  files.key("test_rows", &Hdf5Config::test_rows, range(0, kHuge), "the same for data.test");
  files.key("split", &Hdf5Config::split, text(), "name of a part in Fuel's attribute split, for data.train");
  files.key("test_split", &Hdf5Config::test_split, text(), "the same for data.test");
  files.key("transform", &Hdf5Config::transform, words({"none", "log1p"}),
            "applied to stored values before normalisation; log1p: ln(1 + value)");
  files.key("missing", &Hdf5Config::missing, words({"refuse", "mean"}),
            "NaN and fill values (_FillValue, missing_value): refuse: code 4; mean: the mean of the channel");
  files.key("scale", &Hdf5Config::scale, range(0, 1e15),
            "factor on values before mean and std; 0: 1/255 for 8-bit values, else 1");
  files.key("mean", &Hdf5Config::mean, range(-1e15, 1e15), "of value * scale: one number, or one a channel");
  files.key("std", &Hdf5Config::std, range(1e-300, 1e15), "of value * scale: one number, or one a channel");
  files.key("range", &Hdf5Config::range, range(-1e15, 1e15),
            "values from the first number to the second become 0 to 1");
  files.key("statistics", &Hdf5Config::statistics, text(), "HDF5 file with statistics of stored values by channel");
  files.key("statistics_of", &Hdf5Config::statistics_of, filled_text(), "paths of two datasets in that file");
  files.key("statistics_are", &Hdf5Config::statistics_are, words({"mean_std", "range"}),
            "mean_std: mean and standard deviation; range: the least and the greatest value become 0 and 1");
}

}  // namespace echelon::inline config::keys
