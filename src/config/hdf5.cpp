// SPDX-License-Identifier: Apache-2.0
#include "config/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace echelon::inline config {
namespace {

using Found = std::optional<Misfit>;

Found axes_misfit(const std::string& axes) {
  constexpr std::string_view kKnown = "NCFDHWT";
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (kKnown.find(axes[i]) == std::string_view::npos)
      return Misfit{"axes",
                    fmt::format("data.hdf5.axes = \"{}\": '{}' is none of N (sample), C or F (channel), D, H, W, T "
                                "(time step); e.g. \"NCHW\", \"NHWC\", \"NCDHW\", \"HW\" (a file is one sample), "
                                "\"NTF\"",
                                axes, axes[i])};
    if (axes.find(axes[i], i + 1) != std::string::npos)
      return Misfit{"axes", fmt::format("data.hdf5.axes = \"{}\" has '{}' twice", axes, axes[i])};
  }
  const auto has = [&](char letter) { return axes.find(letter) != std::string::npos; };
  if (has('N') && axes[0] != 'N')
    return Misfit{"axes", fmt::format("data.hdf5.axes = \"{}\": N (sample) must be the first axis", axes)};
  if (has('C') && has('F'))
    return Misfit{"axes", fmt::format("data.hdf5.axes = \"{}\" has both C and F, which are one axis: use one", axes)};
  if (has('D') && !(has('H') && has('W')))
    return Misfit{"axes", fmt::format("data.hdf5.axes = \"{}\": D (slice) goes with H and W; two spatial axes are "
                                      "H and W, one is W",
                                      axes)};
  if (has('T') && (has('H') || has('W')))
    return Misfit{"axes", fmt::format("data.hdf5.axes = \"{}\": T (time step) goes with F only; a time axis of images "
                                      "can be their channels: write C for it",
                                      axes)};
  if (axes.empty() || axes == "N")
    return Misfit{"axes", "data.hdf5.axes names no axis of a sample; e.g. \"NCHW\", \"NHWC\", \"NTF\", \"NF\""};
  return {};
}

Found rows_misfit(const char* key, const std::vector<std::int64_t>& rows) {
  if (rows.empty() || (rows.size() == 2 && rows[0] < rows[1])) return {};
  return Misfit{key, fmt::format("data.hdf5.{} takes the first row and the one after the last, e.g. [0, 50000]", key)};
}

// Whether the spatial axes, without N and channels, are D, H, W in this order.
bool places_in_order(const std::string& axes) {
  std::string places;
  for (const char letter : axes)
    if (letter != 'N' && letter != 'C' && letter != 'F') places += letter;
  return places == "DHW" || places == "HW" || places == "W" || places == "H";
}

Found labels_misfit(const Hdf5Config& keys) {
  const bool dense = keys.label_form == LabelForm::dense, of_classes = dense || keys.label_form == LabelForm::classes;
  if (keys.labels.empty() && (keys.label_form != LabelForm::automatic || !keys.labels_file.empty()))
    return Misfit{"labels", "data.hdf5.labels is missing: the path of the dataset that holds the labels"};
  if (of_classes && keys.classes == 0)
    return Misfit{"classes", fmt::format("data.hdf5.label_form = \"{}\" needs data.hdf5.classes, the number of classes",
                                         dense ? "dense" : "class")};
  if (dense && !places_in_order(keys.axes))
    return Misfit{"label_form",
                  fmt::format("data.hdf5.label_form = \"dense\" has a class for each place in the order of rows and "
                              "columns, but data.hdf5.axes = \"{}\"{}",
                              keys.axes,
                              keys.axes.find('T') == std::string::npos ? " has another order"
                                                                       : " has time steps; nearest valid: \"steps\"")};
  if (keys.label_form == LabelForm::steps && keys.axes.find('T') == std::string::npos)
    return Misfit{"label_form",
                  fmt::format("data.hdf5.label_form = \"steps\" has a label for each time step, but data.hdf5.axes = "
                              "\"{}\" has no T",
                              keys.axes)};
  if (keys.label_column != 0 && keys.label_form != LabelForm::column)
    return Misfit{"label_column", "data.hdf5.label_column goes with label_form = \"column\"; leave it out"};
  if (keys.lead > 0 && (keys.labels.empty() || keys.axes[0] != 'N'))
    return Misfit{"lead", "data.hdf5.lead goes with labels and with many samples a file (axis N); leave it out"};
  if ((keys.label_mean != 0 || keys.label_std != 1) &&
      (keys.labels.empty() || keys.classes > 0 || keys.label_form == LabelForm::one_hot))
    return Misfit{"label_mean",
                  "data.hdf5.label_mean and label_std are of labels that are numbers to be predicted; leave them out"};
  if (keys.label_form == LabelForm::values && keys.classes > 0)
    return Misfit{"classes", "data.hdf5.label_form = \"values\" are numbers and have no classes; leave classes out"};
  if (!keys.labels_file.empty() && keys.labels_file.size() != 2)
    return Misfit{"labels_file",
                  "data.hdf5.labels_file takes two endings: of the file with samples and of the file "
                  "with its labels, e.g. [\"_x.h5\", \"_y.h5\"]"};
  if (!keys.class_names.empty() && std::ssize(keys.class_names) != keys.classes && keys.classes > 0)
    return Misfit{"class_names", fmt::format("data.hdf5.class_names has {} names for {} classes",
                                             keys.class_names.size(), keys.classes)};
  return {};
}

Found values_misfit(const Hdf5Config& keys) {
  const int ways = static_cast<int>(!keys.mean.empty() || !keys.std.empty()) + static_cast<int>(!keys.range.empty()) +
                   static_cast<int>(!keys.statistics.empty());
  if (ways > 1) return Misfit{"mean", "data.hdf5 takes mean and std, or range, or statistics: only one of them"};
  if (!keys.range.empty() && (keys.range.size() != 2 || keys.range[0] >= keys.range[1]))
    return Misfit{"range", "data.hdf5.range takes two numbers, the least and the greatest value, e.g. [0, 4095]"};
  if (keys.statistics.empty() != keys.statistics_of.empty() ||
      (!keys.statistics.empty() && keys.statistics_of.size() != 2))
    return Misfit{"statistics",
                  "data.hdf5.statistics and statistics_of go together: a file and two paths in it, e.g. "
                  "\"stats.h5\" and [\"mean\", \"std\"]"};
  if (keys.statistics.empty() && keys.statistics_are != StatisticsAre::mean_std)
    return Misfit{"statistics_are", "data.hdf5.statistics_are goes with statistics, a file; leave it out"};
  if (keys.scale != 0 && (!keys.range.empty() || !keys.statistics.empty()))
    return Misfit{"scale", "data.hdf5.scale goes with mean and std; range and statistics are of the stored values"};
  return {};
}

Found encoded_misfit(const Hdf5Config& keys) {
  if (!keys.holds_files()) {
    if (keys.lengths.empty() || keys.axes.starts_with("NT") || keys.axes == "NFT") return {};
    return Misfit{
        "lengths",
        "data.hdf5.lengths goes with encoded, rows of JPEG or PNG bytes, and with series (axes \"NTF\"); leave "
        "it out"};
  }
  if (keys.samples.size() > 1) return Misfit{"samples", "data.hdf5.encoded reads one dataset of samples; name one"};
  if (keys.axes != Hdf5Config{}.axes)
    return Misfit{"axes", "data.hdf5.encoded: the bytes of a sample say what its axes are; leave axes out"};
  if (!keys.channels.empty())
    return Misfit{"channels", "data.hdf5.encoded takes \"rgb\" or \"grey\"; leave channels out"};
  if (keys.transform != Transform::none)
    return Misfit{"transform", "data.hdf5.transform is for numbers, not for encoded images; leave it out"};
  if (keys.missing != Missing::refuse)
    return Misfit{"missing", "data.hdf5.missing is for numbers, not for encoded images; leave it out"};
  if (keys.label_form == LabelForm::dense)
    return Misfit{"label_form", "data.hdf5.label_form = \"dense\" does not go with encoded images of any size"};
  return {};
}

}  // namespace

std::optional<Misfit> Hdf5Config::misfit() const {
  if (!used()) {
    if (*this == Hdf5Config{}) return {};
    return Misfit{"samples",
                  "[data.hdf5] lacks the key 'samples': the path of the dataset, or the paths of those, that "
                  "hold the samples (see `echelon data inspect FILE`)"};
  }
  if (!rows.empty() && !split.empty()) return Misfit{"rows", "data.hdf5 takes rows or split, not both"};
  if (!test_rows.empty() && !test_split.empty())
    return Misfit{"test_rows", "data.hdf5 takes test_rows or test_split, not both"};
  const bool parts = !rows.empty() || !test_rows.empty() || !split.empty() || !test_split.empty();
  if (parts && axes.find('N') == std::string::npos)
    return Misfit{"axes",
                  "data.hdf5.axes has no N, so that a file is one sample and has no rows or parts; leave them out"};
  for (auto channel = channels.begin(); channel != channels.end(); ++channel)
    if (std::find(channels.begin(), channel, *channel) != channel)
      return Misfit{"channels", fmt::format("data.hdf5.channels names channel {} twice", *channel)};
  for (const Found& found : {axes_misfit(axes), rows_misfit("rows", rows), rows_misfit("test_rows", test_rows),
                             labels_misfit(*this), values_misfit(*this), encoded_misfit(*this)})
    if (found) return found;
  return {};
}

}  // namespace echelon::inline config
