// SPDX-License-Identifier: Apache-2.0
// The forest plot of claims.hpp: one line per claim, with its effect and interval on a common axis.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escape.hpp"
#include "report/writers/claims.hpp"

namespace echelon::inline report {
namespace {

constexpr double kRow = 26, kTop = 64, kLeft = 430, kWide = 480, kRight = 120;  // pixels
constexpr double kMost = 6;  // reach of the axis to each side, in units of the smallest effect of interest

// Colours of Okabe and Ito, distinct to the colour-blind.
const char* colour_of(ClaimWord word) {
  switch (word) {
    case ClaimWord::confirmed: return "#0072b2";
    case ClaimWord::in_part: return "#e69f00";
    case ClaimWord::refuted: return "#d55e00";
    case ClaimWord::not_decided: return "#7f7f7f";
  }
  return "#7f7f7f";
}

double x_of(double units) { return kLeft + kWide * (std::clamp(units, -kMost, kMost) + kMost) / (2 * kMost); }

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // keep UTF-8 characters whole
  return text.substr(0, end) + "..";
}

struct Line {
  const JudgedClaim* claim;
  const ClaimEffect* effect;  // null: there is none
};

std::string drawn(const Line& line, double y) {
  const Claim& claim = line.claim->record.claim;
  const char* colour = colour_of(line.claim->verdict.word);
  std::string out = fmt::format("<text x=\"12\" y=\"{:.0f}\">{}. {}</text>\n", y + 4, claim.number,
                                escaped_for_markup(shortened(claim.sentence, 58)));
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"{}\">{}</text>\n", kLeft + kWide + 16, y + 4, colour,
                     text_of(line.claim->verdict.word));
  if (line.effect == nullptr) return out;
  const double unit = claim.margin > 0 ? claim.margin : 1;
  const ClaimEffect& e = *line.effect;
  // If the claim names a value, effects are shown next to it.
  const bool named = std::isfinite(e.region_low) && std::isfinite(e.region_high);
  const double centre = named ? (e.region_low + e.region_high) / 2 : 0;
  const auto units = [&](double effect) { return (effect - centre) / unit; };
  const double low = std::isinf(e.region_low) ? -kMost : units(e.region_low),
               high = std::isinf(e.region_high) ? kMost : units(e.region_high);
  out += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"#0072b2\" "
      "fill-opacity=\"0.12\"/>\n",
      x_of(low), y - 8, std::max(2.0, x_of(high) - x_of(low)), 16);
  out += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"2\"/>\n",
      x_of(units(e.low)), y, x_of(units(e.high)), y, colour);
  const bool inside = std::fabs(units(e.value)) <= kMost;
  out +=
      fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\"{}><title>{}</title></circle>\n",
                  x_of(units(e.value)), y, inside ? colour : "none",
                  inside ? "" : fmt::format(" stroke=\"{}\" stroke-width=\"2\"", colour), escaped_for_markup(e.what));
  return out;
}

}  // namespace

std::string forest_svg(const std::vector<JudgedClaim>& claims) {
  std::vector<Line> lines;
  for (const JudgedClaim& claim : claims) {
    const ClaimEffect* worst = nullptr;
    for (const TestVerdict& test : claim.verdict.tests)
      if (!test.effects.empty() && (worst == nullptr || test.word != ClaimWord::confirmed)) worst = &test.decisive();
    lines.push_back({&claim, worst});
  }
  const double width = kLeft + kWide + kRight, height = kTop + kRow * static_cast<double>(lines.size()) + 30;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#fff\"/>\n"
      "<text x=\"12\" y=\"24\" font-size=\"16\">{2}</text>\n"
      "<text x=\"12\" y=\"46\" fill=\"#555\">Effect with 95 % interval, in units of the smallest effect of interest; "
      "shaded: the claimed region; hollow: beyond the axis</text>\n",
      width, height, escaped_for_markup(claims_headline(claims)));
  const double bottom = kTop + kRow * static_cast<double>(lines.size());
  for (int tick = -static_cast<int>(kMost); tick <= static_cast<int>(kMost); tick += 2)
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.0f}\" stroke=\"{3}\"/>\n<text x=\"{0:.1f}\" "
        "y=\"{4:.0f}\" text-anchor=\"middle\" fill=\"#555\">{5}</text>\n",
        x_of(tick), kTop - 6, bottom, tick == 0 ? "#555" : "#ddd", bottom + 18, tick);
  double y = kTop + kRow / 2;
  for (const Line& line : lines) {
    out += drawn(line, y);
    y += kRow;
  }
  return out + "</svg>\n";
}

}  // namespace echelon::inline report
