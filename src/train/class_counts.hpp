// SPDX-License-Identifier: Apache-2.0
// Counts over the labels of an evaluation, and the figures of classes that follow from them.
//
// Each label that counts contributes its class, the class of the largest output (the first of equal ones), and its
// position: the number of outputs before its own in descending order (the first of equal ones comes first). Counts are
// whole numbers, which doubles hold exactly, so that any number of ranks finds the same figures.
//
//   top-5 accuracy   labels at a position below 5, over all labels; unknown with at most 5 classes
//   recall           of a class: right predictions over its labels; unknown without labels
//   precision        of a class: right predictions over its predictions; unknown without predictions
//   F1               of a class: 2 right / (labels + predictions); unknown without both. Of pixels it is the Dice
//                    coefficient of the class
//   IoU              of a class: right / (labels + predictions - right), intersection over union; unknown without both
//   macro F1, mean IoU   means over the classes that have labels or predictions
//   AUC              of two classes: the area under the ROC curve, which is the probability that a label of class 1 has
//   a
//                    higher score than one of class 0, equal ones counting half (Hanley, McNeil 1982). The score is the
//                    logit of class 1 less that of class 0, rounded to 13 significant bits; magnitudes below 2^-16 are
//                    one score, those from 2^8 another. Memory is bounded: 3 MiB of counts
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/figures.hpp"

namespace echelon::inline train {

// Figures by class are empty where they were not asked for, others kUnknown.
struct ClassFigures {
  double top5_accuracy = kUnknown, macro_f1 = kUnknown, mean_iou = kUnknown, auc = kUnknown;
  std::vector<double> recall, precision, f1, iou;  // by class
};

class ClassCounts {
 public:
  // The largest number of classes of which a confusion matrix is kept: 128 MiB.
  static constexpr std::int64_t kMostConfused = 4096;

  ClassCounts() = default;  // of no classes
  // `curve`: also counts scores, of two classes.
  ClassCounts(std::int64_t classes, bool confusion, bool curve = false);

  bool any() const { return classes_ > 0; }
  std::int64_t classes() const { return classes_; }
  bool has_curve() const { return curve_; }
  void add(std::int64_t label, std::int64_t chosen, std::int64_t position);
  // With a curve, for the same label: the logit of class 1 less that of class 0.
  void add_score(std::int64_t label, double score);
  // All counts, to be summed over ranks.
  std::span<double> values() { return values_; }

  ClassFigures figures() const;
  double accuracy() const;  // right predictions over all labels; kUnknown without labels
  // A line a class: class, name, labels, predictions, right, recall, precision, F1, IoU, and with a confusion matrix
  // how many of its labels were taken for each class. `names` by class; may be empty.
  std::string csv(const std::vector<std::string>& names) const;

 private:
  enum PerClass : std::uint8_t { kLabels, kChosen, kRight, kPerClass };
  std::size_t at(PerClass what, std::int64_t of) const;
  double count(PerClass what, std::int64_t of) const { return values_[at(what, of)]; }
  double f1(std::int64_t of) const;
  double iou(std::int64_t of) const;
  double auc() const;
  std::size_t curve_begin() const;

  std::int64_t classes_ = 0;
  bool confusion_ = false, curve_ = false;
  // Labels, labels below position 5; by class; matrix (label, chosen); curve (label, score)
  std::vector<double> values_;
};

// Keeps the figures that evaluate.metrics names.
ClassFigures chosen_figures(ClassFigures all, const std::vector<std::string>& metrics);

// Fills in the fields test_top5_accuracy .. of EpochFigures and RunFigures.
template <class Figures>
void take_class_figures(const ClassFigures& from, Figures& to) {
  to.test_top5_accuracy = from.top5_accuracy;
  to.test_macro_f1 = from.macro_f1;
  to.test_mean_iou = from.mean_iou;
  to.test_auc = from.auc;
  to.test_recall = from.recall;
  to.test_precision = from.precision;
  to.test_f1 = from.f1;
  to.test_iou = from.iou;
}

}  // namespace echelon::inline train
