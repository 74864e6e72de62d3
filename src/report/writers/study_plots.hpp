// The figures of a study's page as plots (plot.hpp), before they are drawn. Pure functions; there is a setting.
#pragma once

#include "report/evidence.hpp"
#include "report/writers/plot.hpp"

namespace echelon::inline report {

// One line a variant, over its numbers of ranks. A variant has the same colour here and in the curves.
LinePlot speed_plot(const Evidence& evidence);
// Of all settings; where they are too many for a figure, of the best single worker and the largest size.
StackPlot budget_plot(const Evidence& evidence);
// The figure of the evaluations, over seconds or over thousands of samples, of the largest size and, dashed, of the
// best single worker.
LinePlot curve_plot(const Evidence& evidence, bool over_time);

}  // namespace echelon::inline report
