// SPDX-License-Identifier: Apache-2.0
#include "report/writers/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escape.hpp"

namespace echelon::inline report {
namespace {

constexpr std::size_t kMostTexts = 16;
constexpr int kMargin = 110, kAbove = 80;

// A colour between dark and light blue, at `part` in [0, 1]; readable in grey.
std::string colour(double part) {
  const auto mix = [&](int dark, int light) { return static_cast<int>(std::lround(dark + part * (light - dark))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(8, 222), mix(48, 235), mix(107, 247));
}

class Drawing {
 public:
  explicit Drawing(const HeatMap& map) : map_(map), n_(map.labels.size()) {
    for (std::size_t i = 0; i < map.values.size(); ++i) {
      if (!(map.values[i] > 0)) continue;
      if (!any_ || map.values[i] < map.values[least_]) least_ = i;
      if (!any_ || map.values[i] > map.values[most_]) most_ = i;
      any_ = true;
    }
    cell_ = n_ <= kMostTexts ? 76 : std::max(3, 1200 / static_cast<int>(std::max<std::size_t>(n_, 1)));
  }

  std::string svg() {
    const int side = cell_ * static_cast<int>(n_), width = kMargin + side + 20, height = kAbove + side + 50;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<style>text {{ fill: #222 }} .dark {{ fill: #fff }} .light {{ fill: #111 }} .none {{ stroke: #b00020; "
        "stroke-width: 2 }} @media (prefers-color-scheme: dark) {{ text {{ fill: #ddd }} .dark {{ fill: #fff }} .light "
        "{{ fill: #111 }} }}</style>\n",
        width, height);
    out += label(kMargin, 24, "start", map_.title, "font-size=\"15\"");
    out += label(kMargin + side / 2, 48, "middle", map_.columns);
    out += label(12, kAbove - 8, "start", map_.rows);
    for (std::size_t i = 0; i < n_; ++i) out += headings(i);
    for (std::size_t i = 0; i < n_ * n_; ++i) out += cell(i);
    if (any_)
      out += label(kMargin, kAbove + side + 30, "start",
                   fmt::format("dark: {}, light: {}", map_.texts[least_], map_.texts[most_]));
    return out + "</svg>\n";
  }

 private:
  static std::string label(int x, int y, const char* anchor, const std::string& text, const std::string& more = "") {
    return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, more,
                       escaped_for_markup(text));
  }

  // Large matrices are labelled at intervals, so that the labels do not overlap.
  std::string headings(std::size_t i) const {
    if (i % static_cast<std::size_t>(1 + 14 / cell_) != 0) return {};
    const int middle = static_cast<int>(i) * cell_ + cell_ / 2;
    const int x = kMargin + middle;
    if (n_ > kMostTexts)
      return label(kMargin - 8, kAbove + middle + 4, "end", map_.labels[i]) +
             label(x, kAbove - 8, "start", map_.labels[i],
                   fmt::format("transform=\"rotate(-60 {} {})\"", x, kAbove - 8));
    return label(kMargin - 8, kAbove + middle + 4, "end", map_.labels[i]) +
           label(x, kAbove - 8, "middle", map_.labels[i]);
  }

  double part(double value) const {
    const double low = std::log(map_.values[least_]);
    const double high = std::log(map_.values[most_]);
    return high > low ? (std::log(value) - low) / (high - low) : 1;
  }

  std::string cell(std::size_t i) const {
    const int x = kMargin + static_cast<int>(i % n_) * cell_, y = kAbove + static_cast<int>(i / n_) * cell_;
    const double value = map_.values[i];
    if (std::isnan(value)) return {};
    if (!(value > 0))
      return fmt::format("<path class=\"none\" d=\"M{0} {1}L{2} {3}M{2} {1}L{0} {3}\"/>\n", x + 2, y + 2, x + cell_ - 2,
                         y + cell_ - 2);
    const double shade = part(value);
    std::string out = fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\n", x, y, cell_, cell_,
        colour(shade),
        escaped_for_markup(fmt::format("{} to {}: {}", map_.labels[i / n_], map_.labels[i % n_], map_.texts[i])));
    if (n_ <= kMostTexts)
      out += label(x + cell_ / 2, y + cell_ / 2 + 4, "middle", map_.texts[i],
                   fmt::format("class=\"{}\" font-size=\"11\"", shade < 0.5 ? "dark" : "light"));
    return out;
  }

  const HeatMap& map_;
  std::size_t n_;
  bool any_ = false;
  std::size_t least_ = 0, most_ = 0;  // indices of the smallest and largest value
  int cell_ = 3;
};

}  // namespace

std::string heat_map_svg(const HeatMap& map) { return Drawing(map).svg(); }

}  // namespace echelon::inline report
