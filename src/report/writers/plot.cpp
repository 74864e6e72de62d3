#include "report/writers/plot.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/text.hpp"

namespace echelon::inline report {
namespace {

// Distinguishable on white and on black, also without red or green (after Okabe and Ito, 2008).
constexpr std::array<const char*, kPlotColours> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
                                                            "#d55e00", "#999999", "#8f6fd1", "#b8a800", "#7a5230",
                                                            "#e0507a", "#5f8a3c", "#74c2c2"};

std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "\"" + text + "\"";
}

// What gnuplot writes for this script; "" where it fails.
std::string run_gnuplot(const std::string& script) {
  std::string folder = (std::filesystem::temp_directory_path() / "echelon-plot-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return {};
  const std::string file = folder + "/script";
  std::ofstream(file) << script;
  std::string svg;
  if (FILE* pipe = ::popen(("gnuplot '" + file + "' 2>/dev/null").c_str(), "r")) {
    std::array<char, 4096> block;
    for (std::size_t n; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) svg.append(block.data(), n);
    if (::pclose(pipe) != 0) svg.clear();
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  const std::size_t start = svg.find("<svg");
  if (start == std::string::npos) return {};
  svg.erase(0, start);
  for (const char* black : {"black", "rgb(  0,   0,   0)", "rgb(0,0,0)", "#000000"})
    svg = replaced(std::move(svg), black, "currentColor");
  return svg;
}

// A little wider than the points, on a logarithmic axis.
std::string range_of_x(const LinePlot& plot) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const PlotLine& line : plot.lines)
    for (const PlotPoint& p : line.points) least = std::min(least, p.x), most = std::max(most, p.x);
  return most > least ? fmt::format("set xrange [{}:{}]\n", least / 1.06, most * 1.06) : "";
}

std::string heading(const std::string& title, int width, int height) {
  return fmt::format(
      "set terminal svg size {},{} dynamic font 'sans-serif,13'\nset encoding utf8\nset title {} "
      "noenhanced\nset border 3 lw 1\nset tics nomirror out\nset grid ytics lw 0.5 dt 3\nset key outside right top "
      "vertical Left reverse noenhanced samplen 2\n",
      width, height, quoted(title));
}

}  // namespace

bool can_draw() { return ::system("gnuplot --version > /dev/null 2>&1") == 0; }

std::string draw_svg(const LinePlot& plot) {
  std::string script = heading(plot.title, 760, 380);
  script +=
      fmt::format("set xlabel {} noenhanced\nset ylabel {} noenhanced\n", quoted(plot.x_label), quoted(plot.y_label));
  script += plot.log2_x ? "set logscale x 2\nset xtics 2\n" + range_of_x(plot) : "set offsets graph 0.03, 0.03, 0, 0\n";
  if (plot.diagonal) script += "set yrange [0:*]\n";
  std::string draws;
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    script += fmt::format("$line{} << EOD\n", i);
    bool spread = false;
    for (const PlotPoint& p : plot.lines[i].points) {
      script += fmt::format("{} {} {} {}\n", p.x, p.y, p.low, p.high);
      spread |= p.low != p.high;
    }
    script += "EOD\n";
    const char* colour = kColours[plot.lines[i].colour.value_or(i) % kColours.size()];
    draws +=
        fmt::format("{}$line{} using 1:2 with linespoints lw 2 {} lc rgb '{}' title {}", draws.empty() ? "" : ", ", i,
                    plot.lines[i].dashed ? "dt 2 pt 6 ps 0.6" : "pt 7 ps 0.5", colour, quoted(plot.lines[i].name));
    if (spread)
      draws += fmt::format(", $line{} using 1:3:(0):($4-$3) with vectors nohead lw 1 lc rgb '{}' notitle", i, colour);
  }
  if (draws.empty()) return {};
  if (plot.diagonal) draws += ", x with lines lw 1 dt 2 lc rgb '#888888' title 'ideal'";
  return run_gnuplot(script + "plot " + draws + "\n");
}

std::string draw_svg(const StackPlot& plot) {
  if (plot.bars.empty()) return {};
  double most = 100;  // a little more where parts below 0 are left out
  for (const std::vector<double>& values : plot.values) {
    double sum = 0;
    for (const double value : values) sum += std::max(0.0, std::isfinite(value) ? value : 0);
    most = std::max(most, std::ceil(sum - 0.5));
  }
  const int height = std::clamp(340 + 6 * static_cast<int>(plot.bars.size()), 360, 560);
  std::string script = heading(plot.title, 900, height);
  script +=
      "set style data histograms\nset style histogram rowstacked\nset style fill solid 0.9 noborder\n"
      "set boxwidth 0.75\nset ylabel '%'\nset xtics rotate by -35 left noenhanced\n";
  script += fmt::format("set yrange [0:{:.0f}]\n$bars << EOD\n", most);
  for (std::size_t b = 0; b < plot.bars.size(); ++b) {
    script += quoted(plot.bars[b]);
    for (const double value : plot.values[b])
      script += fmt::format(" {}", std::max(0.0, std::isfinite(value) ? value : 0));
    script += "\n";
  }
  script += "EOD\n";
  std::string draws;
  for (std::size_t p = 0; p < plot.parts.size(); ++p)
    draws += fmt::format("{}$bars using {}{} lc rgb '{}' title {}", p ? ", " : "", p + 2, p ? "" : ":xtic(1)",
                         kColours[p % kColours.size()], quoted(plot.parts[p]));
  return run_gnuplot(script + "plot " + draws + "\n");
}

}  // namespace echelon::inline report
