// SPDX-License-Identifier: Apache-2.0
#include "train/class_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/text.hpp"

namespace echelon::inline train {
namespace {

constexpr std::size_t kAllLabels = 0, kInTop5 = 1, kTotals = 2;
constexpr std::int64_t kTop = 5;

// Bins of a score: for each sign 24 octaves of 2^12, and one for scores near 0.
constexpr int kLeastOctave = -16, kOctaves = 24, kBits = 12;
constexpr std::int64_t kSide = std::int64_t{kOctaves} << kBits, kBins = 2 * kSide + 1;

std::int64_t bin_of(double score) {
  int exponent = 0;
  const double part = std::frexp(std::fabs(score), &exponent);  // in [1/2, 1)
  const int octave = exponent - 1 - kLeastOctave;
  if (octave < 0 || !(part > 0)) return kSide;
  const auto within = static_cast<std::int64_t>((2 * part - 1) * static_cast<double>(1 << kBits));
  const std::int64_t key = octave >= kOctaves ? kSide : (std::int64_t{octave} << kBits) + within + 1;
  return score > 0 ? kSide + key : kSide - key;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : kUnknown; }

std::string number(double value) { return value == value ? fmt::format("{}", value) : ""; }

}  // namespace

ClassCounts::ClassCounts(std::int64_t classes, bool confusion, bool curve)
    : classes_(classes), confusion_(confusion), curve_(curve) {
  ECHELON_CHECK_GT(classes, 0);
  ECHELON_CHECK(!confusion || classes <= kMostConfused, "a matrix of {} classes", classes);
  ECHELON_CHECK(!curve || classes == 2, "a curve of {} classes", classes);
  values_.resize(curve_begin() + (curve ? 2 * static_cast<std::size_t>(kBins) : 0));
}

std::size_t ClassCounts::at(PerClass what, std::int64_t of) const {
  return kTotals + static_cast<std::size_t>(what * classes_ + of);
}

void ClassCounts::add(std::int64_t label, std::int64_t chosen, std::int64_t position) {
  ++values_[kAllLabels];
  values_[kInTop5] += position < kTop ? 1 : 0;
  ++values_[at(kLabels, label)];
  ++values_[at(kChosen, chosen)];
  if (label == chosen) ++values_[at(kRight, label)];
  if (confusion_) ++values_[at(kPerClass, label * classes_ + chosen)];
}

std::size_t ClassCounts::curve_begin() const {
  const auto n = static_cast<std::size_t>(classes_);
  return kTotals + kPerClass * n + (confusion_ ? n * n : 0);
}

void ClassCounts::add_score(std::int64_t label, double score) {
  ++values_[curve_begin() + static_cast<std::size_t>(label * kBins + bin_of(score))];
}

double ClassCounts::auc() const {
  if (!curve_) return kUnknown;
  const double *no = values_.data() + curve_begin(), *yes = no + kBins;
  double below = 0, won = 0, labels = 0;
  for (std::int64_t bin = 0; bin < kBins; ++bin) {
    won += yes[bin] * (below + no[bin] / 2);
    below += no[bin], labels += yes[bin];
  }
  return ratio(won, below * labels);
}

double ClassCounts::f1(std::int64_t of) const {
  return ratio(2 * count(kRight, of), count(kLabels, of) + count(kChosen, of));
}

double ClassCounts::iou(std::int64_t of) const {
  return ratio(count(kRight, of), count(kLabels, of) + count(kChosen, of) - count(kRight, of));
}

double ClassCounts::accuracy() const {
  double right = 0;
  for (std::int64_t c = 0; c < classes_; ++c) right += count(kRight, c);
  return ratio(right, values_[kAllLabels]);
}

ClassFigures ClassCounts::figures() const {
  ClassFigures figures{.recall = {}, .precision = {}, .f1 = {}, .iou = {}};
  if (classes_ > kTop) figures.top5_accuracy = ratio(values_[kInTop5], values_[kAllLabels]);
  double f1_sum = 0, iou_sum = 0, present = 0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    figures.recall.push_back(ratio(count(kRight, c), count(kLabels, c)));
    figures.precision.push_back(ratio(count(kRight, c), count(kChosen, c)));
    figures.f1.push_back(f1(c));
    figures.iou.push_back(iou(c));
    if (count(kLabels, c) + count(kChosen, c) > 0) f1_sum += f1(c), iou_sum += iou(c), ++present;
  }
  figures.macro_f1 = ratio(f1_sum, present);
  figures.mean_iou = ratio(iou_sum, present);
  figures.auc = auc();
  return figures;
}

std::string ClassCounts::csv(const std::vector<std::string>& names) const {
  const ClassFigures all = figures();
  std::vector<std::string> head = {"class",  "name",      "labels", "predictions", "right",
                                   "recall", "precision", "f1",     "iou"};
  for (std::int64_t c = 0; confusion_ && c < classes_; ++c) head.push_back(fmt::format("as_{}", c));
  Table table(head);
  for (std::int64_t c = 0; c < classes_; ++c) {
    const auto i = static_cast<std::size_t>(c);
    std::vector<std::string> row = {number(static_cast<double>(c)),
                                    i < names.size() ? names[i] : "",
                                    number(count(kLabels, c)),
                                    number(count(kChosen, c)),
                                    number(count(kRight, c)),
                                    number(all.recall[i]),
                                    number(all.precision[i]),
                                    number(f1(c)),
                                    number(all.iou[i])};
    for (std::int64_t to = 0; confusion_ && to < classes_; ++to)
      row.push_back(number(count(kPerClass, c * classes_ + to)));
    table.row(std::move(row));
  }
  return table.csv();
}

ClassFigures chosen_figures(ClassFigures all, const std::vector<std::string>& metrics) {
  const auto requested = [&](const char* name) {
    return std::find(metrics.begin(), metrics.end(), name) != metrics.end();
  };
  if (!requested("top5_accuracy")) all.top5_accuracy = kUnknown;
  if (!requested("macro_f1")) all.macro_f1 = kUnknown;
  if (!requested("mean_iou")) all.mean_iou = kUnknown;
  if (!requested("auc")) all.auc = kUnknown;
  if (!requested("class_f1")) all.f1.clear();
  if (!requested("class_iou")) all.iou.clear();
  if (!requested("class_recall")) all.recall.clear();
  if (!requested("class_precision")) all.precision.clear();
  return all;
}

}  // namespace echelon::inline train
