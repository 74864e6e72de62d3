// The figures of a study's page (plot.hpp), before they are drawn. Pure functions; some run has finished.
#pragma once

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/plot.hpp"

namespace echelon::inline report {

// Bars of stacked parts, in percent.
struct StackPlot {
  std::string title;
  std::vector<std::string> bars, parts;
  std::vector<std::vector<double>> values;  // by bar, by part; those below 0 are not drawn
};

inline constexpr const char* kCurvesText =
    "Medians over the repetitions; the band goes from the least to the greatest. Dashed: the best single worker.";

// Gains over one worker, each with its 95 % interval.
struct GainRow {
  std::string name;
  Effect effect;
  bool shown = false;  // to be more than the least gain
};
struct GainPlot {
  std::string title;
  std::vector<GainRow> rows;
  double low = 1, high = 1;  // of the axis, which is logarithmic
  std::vector<double> ticks;
};
inline constexpr const char* kGainsText =
    "Points are means over pairs of equal repetitions, lines their 95 % intervals. In colour: shown to be more than "
    "the "
    "least gain that counts.";

bool is_baseline(const Evidence& evidence, const Setting& s);  // of its environment

// What the tests of the verdict found of every setting, the greatest gain first.
GainPlot gain_plot(const Evidence& evidence, const StudyVerdict& verdict);
// One line a variant, over its numbers of ranks. A variant has the same colour here and in the curves.
LinePlot speed_plot(const Evidence& evidence);
// Of all settings; where they are too many for a figure, of the best single worker and the largest size.
StackPlot budget_bars(const Evidence& evidence);
// The figure of the evaluations over seconds or over thousands of samples, of the largest size and, dashed, of the best
// single worker; all repetitions together.
LinePlot curve_plot(const Evidence& evidence, bool over_time);

}  // namespace echelon::inline report
