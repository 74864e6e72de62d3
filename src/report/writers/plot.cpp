// SPDX-License-Identifier: Apache-2.0
#include "report/writers/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/escape.hpp"
#include "base/text.hpp"

namespace echelon::inline report {
namespace {

// Okabe and Ito (2008), where readable on white and on black.
constexpr std::array<const char*, kPlotColours> kColours = {"#0072b2", "#e08e00", "#009e73", "#cc79a7", "#56b4e9",
                                                            "#d55e00", "#8a8f98", "#8f6fd1", "#a89a00", "#8a6242",
                                                            "#e0507a", "#5f8a3c", "#4fb3b3"};

constexpr double kWidth = 560, kHeight = 300;
constexpr double kLeft = 52, kRight = 14, kTop = 24, kBottom = 40;  // around the axes

// One axis: its range, and the position of a value on the page.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  bool log2 = false;
  double from = 0, to = 1;  // pixels on the page

  void take(double value) {
    if (!std::isfinite(value) || (log2 && !(value > 0))) return;
    low = std::fmin(low, value), high = std::fmax(high, value);
  }
  double scaled(double value) const { return log2 ? std::log2(value) : value; }
  double at(double value) const {
    return from + (to - from) * (scaled(value) - scaled(low)) / (scaled(high) - scaled(low));
  }
  bool holds(double value) const { return std::isfinite(value) && (!log2 || value > 0); }

  // Makes the axis a little wider than its values, and never of zero width.
  void widen(double part) {
    const double bottom = scaled(low), top = scaled(high), more = top > bottom ? part * (top - bottom) : 0.5;
    const bool from_zero = !log2 && low >= 0 && low <= 0.25 * high;  // an axis that starts near 0 is made to start at 0
    low = log2 ? std::exp2(bottom - more) : from_zero ? 0 : bottom - more;
    high = log2 ? std::exp2(top + more) : top + more;
  }

  // Ticks 1, 2 or 5 times a power of ten apart, about five of them; powers of two on a log2 axis.
  std::vector<double> ticks() const {
    std::vector<double> all;
    if (log2) {
      const int first = static_cast<int>(std::ceil(std::log2(low) - 1e-9)),
                last = static_cast<int>(std::log2(high) + 1e-9);
      const int each = std::max(1, (last - first + 7) / 8);
      for (int power = first; power <= last; power += each) all.push_back(std::exp2(power));
      return all;
    }
    const double raw = (high - low) / 5, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
    for (double tick = std::ceil(low / step) * step; tick <= high + 1e-9 * step; tick += step)
      all.push_back(std::fabs(tick) < 1e-9 * step ? 0 : tick);
    return all;
  }
};

std::string number(double value) {
  return std::fabs(value) >= 1e4 && std::fabs(value) < 1e9 ? count_text(std::llround(value))
                                                           : fmt::format("{:.4g}", value);
}

std::string label(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped_for_markup(text));
}

std::string axes(const LinePlot& plot, const Axis& x, const Axis& y) {
  std::string out = "<g fill=\"currentColor\" stroke=\"none\">\n";
  for (const double tick : y.ticks()) {
    out += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"currentColor\" stroke-opacity=\".13\"/>\n", kLeft,
                       y.at(tick), kWidth - kRight);
    out += label(kLeft - 7, y.at(tick) + 4, "end", number(tick));
  }
  for (const double tick : x.ticks()) {
    out += fmt::format("<path d=\"M{:.1f} {:.1f}v4\" stroke=\"currentColor\" stroke-opacity=\".5\"/>\n", x.at(tick),
                       kHeight - kBottom);
    out += label(x.at(tick), kHeight - kBottom + 17, "middle", number(tick));
  }
  out += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"currentColor\" stroke-opacity=\".5\"/>\n", kLeft,
                     kHeight - kBottom, kWidth - kRight);
  out += label(kWidth - kRight, kHeight - 5, "end", plot.x_label, " fill-opacity=\".7\"");
  return out + label(4, 12, "start", plot.y_label, " fill-opacity=\".7\"") + "</g>\n";
}

std::string value_text(const LinePlot& plot, const PlotLine& line, const PlotPoint& p) {
  std::string text = fmt::format("{}: {} {} at {} {}", line.name, plot.y_label, number(p.y), number(p.x), plot.x_label);
  if (p.low != p.high) text += fmt::format(" ({} to {})", number(p.low), number(p.high));
  return text;
}

std::string line_svg(const LinePlot& plot, std::size_t index, const Axis& x, const Axis& y) {
  const PlotLine& line = plot.lines[index];
  const char* colour = plot_colour(colour_of(plot, index));
  std::string path, upper, lower, points;
  const auto clamped = [&](double value) { return y.at(std::clamp(value, y.low, y.high)); };
  for (const PlotPoint& p : line.points) {
    if (!x.holds(p.x) || !y.holds(p.y)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(p.x), y.at(p.y));
    if (std::isfinite(p.low) && std::isfinite(p.high)) {
      upper += fmt::format("{}{:.1f} {:.1f}", upper.empty() ? "M" : "L", x.at(p.x), clamped(p.high));
      lower = fmt::format("L{:.1f} {:.1f}", x.at(p.x), clamped(p.low)) + lower;
    }
    points += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>\n", x.at(p.x),
                          y.at(p.y), line.points.size() > 12 ? 1.5 : 3, escaped_for_markup(value_text(plot, line, p)));
  }
  if (path.empty()) return {};
  const bool band =
      std::any_of(line.points.begin(), line.points.end(), [](const PlotPoint& p) { return p.low < p.high; });
  std::string out = fmt::format("<g data-line=\"{}\" fill=\"{}\">\n", index, colour);
  if (band) out += fmt::format("<path d=\"{}{}Z\" fill-opacity=\".16\"/>\n", upper, lower);
  out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{}/>\n",
                     path, colour, line.dashed ? " stroke-dasharray=\"6 4\"" : "");
  return out + points + "</g>\n";
}

// The content of <svg>; "" if there is no point.
std::string body(const LinePlot& plot) {
  Axis x{.log2 = plot.log2_x, .from = kLeft, .to = kWidth - kRight};
  Axis y{.log2 = plot.log2_y, .from = kHeight - kBottom, .to = kTop};
  for (const PlotLine& line : plot.lines)
    for (const PlotPoint& p : line.points)
      if (x.holds(p.x) && y.holds(p.y)) x.take(p.x), y.take(p.y), y.take(p.low), y.take(p.high);
  if (!(x.low <= x.high)) return {};
  if (plot.diagonal) y.take(x.low), y.take(x.high);
  x.widen(0.03), y.widen(0.05);
  std::string out = axes(plot, x, y);
  if (plot.diagonal) {
    const double from = std::fmax(x.low, y.low), to = std::fmin(x.high, y.high);
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"currentColor\" stroke-opacity=\".45\" "
        "stroke-dasharray=\"2 4\"/>\n",
        x.at(from), y.at(from), x.at(to), y.at(to));
    out += label(x.at(to) - 6, y.at(to) + 4, "end", "ideal", " fill=\"currentColor\" fill-opacity=\".6\"");
  }
  for (std::size_t i = 0; i < plot.lines.size(); ++i) out += line_svg(plot, i, x, y);
  return out;
}

std::string svg(const std::string& inside, double top, double height, const std::string& more) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {:.0f} {:.0f} {:.0f}\" font-family=\"system-ui, "
      "sans-serif\" font-size=\"12\"{}>\n{}</svg>",
      top, kWidth, height, more, inside);
}

}  // namespace

const char* plot_colour(std::size_t index) { return kColours[index % kColours.size()]; }

std::size_t colour_of(const LinePlot& plot, std::size_t line) { return plot.lines[line].colour.value_or(line); }

std::string curves_svg(const LinePlot& plot) {
  const std::string inside = body(plot);
  if (inside.empty()) return {};
  return svg(inside, 0, kHeight, fmt::format(" role=\"img\" aria-label=\"{}\"", escaped_for_markup(plot.title)));
}

std::string svg_file(const LinePlot& plot) {
  constexpr double kHeading = 26, kRow = 18;
  std::string inside = body(plot);
  if (inside.empty()) return {};
  inside += label(4, -10, "start", plot.title, " fill=\"currentColor\" font-size=\"15\" font-weight=\"600\"");
  double y = kHeight + 14;
  for (std::size_t i = 0; i < plot.lines.size(); ++i, y += kRow) {
    inside += fmt::format("<path d=\"M{0:.0f} {1:.0f}h22\" stroke=\"{2}\" stroke-width=\"2\"{3}/>\n", kLeft, y - 4,
                          plot_colour(colour_of(plot, i)), plot.lines[i].dashed ? " stroke-dasharray=\"6 4\"" : "");
    inside += label(kLeft + 30, y, "start", plot.lines[i].name, " fill=\"currentColor\"");
  }
  constexpr const char* kPage =
      "<style>svg { color: #1b1f24; background: #fff } @media (prefers-color-scheme: dark) { svg { color: #e4e8ee; "
      "background: #14171c } }</style>\n";
  return svg(kPage + inside, -kHeading, y + kHeading, "") + "\n";
}

}  // namespace echelon::inline report
