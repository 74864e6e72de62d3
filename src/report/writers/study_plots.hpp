// SPDX-License-Identifier: Apache-2.0
// The figures of a study's page (plot.hpp), before they are drawn. Pure functions; they require a finished run.
#pragma once

#include "report/evidence.hpp"
#include "report/verdict.hpp"
#include "report/writers/plot.hpp"

namespace echelon::inline report {

// Bars of stacked parts, in percent.
struct StackPlot {
  std::string title;
  std::vector<std::string> bars, parts;
  std::vector<std::vector<double>> values;  // [bar][part]; parts below 0 are not drawn
};

inline constexpr const char* kCurvesText =
    "Medians over the repetitions; the band spans the smallest to the largest value. Dashed: the best single worker.";

// The gain of one setting over one worker, with its 95 % interval.
struct GainRow {
  std::string name;
  Effect effect;
  bool shown = false;  // the gain is shown to be more than the least gain
};
struct GainPlot {
  std::string title;
  std::vector<GainRow> rows;
  double low = 1, high = 1;  // range of the axis, which is logarithmic
  std::vector<double> ticks;
};
inline constexpr const char* kGainsText =
    "Points are means over pairs of equal repetitions, lines their 95 % intervals. Coloured: shown to exceed the "
    "smallest gain that counts.";

bool is_baseline(const Evidence& evidence, const Setting& s);  // baseline of the setting's own environment

// Returns the effects that the verdict's tests found for every setting, the greatest gain first.
GainPlot gain_plot(const Evidence& evidence, const StudyVerdict& verdict);
// Draws one line per variant over its numbers of ranks. A variant has the same colour here and in the curves.
LinePlot speed_plot(const Evidence& evidence);
// Draws all settings; if they are too many for one figure, only the best single worker and the largest size.
StackPlot budget_bars(const Evidence& evidence);
// Draws the evaluated figure over seconds or thousands of samples, for the largest size and, dashed, for the best
// single worker; the repetitions are combined.
LinePlot curve_plot(const Evidence& evidence, bool over_time);

}  // namespace echelon::inline report
