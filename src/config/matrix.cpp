// SPDX-License-Identifier: Apache-2.0
// The matrix of `echelon check --combinations`: looks up every pair of choices in the table of exclusions.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/combinations.hpp"
#include "config/keys.hpp"
#include "config/traits/layers.hpp"

namespace echelon::inline config {
namespace {

// Choices of one axis that have equal relations to all others, shown as one row and one column.
struct Group {
  std::string axis;
  std::vector<const Choice*> choices;

  std::string text() const {
    std::vector<std::string> names;
    for (const Choice* choice : choices) names.push_back(choice->name);
    const std::string text = joined(names);
    return text.size() > 35 ? joined(names, ",") : text;  // the matrix has the width of a page
  }
};

std::vector<Group> groups() {
  std::vector<Group> all;
  for (const ChoiceAxis& axis : choice_axes()) {
    const std::size_t first = all.size();
    for (const Choice& choice : axis.choices) {
      const auto like = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), [&](const Group& g) {
        const Choice& other = *g.choices.front();
        return choice.worded && other.worded && choice.path == other.path && choice.is == other.is;
      });
      if (like != all.end())
        like->choices.push_back(&choice);
      else
        all.push_back({axis.name, {&choice}});
    }
  }
  return all;
}

// Assigns letters to reasons, in the order in which they occur.
class Legend {
 public:
  std::string letter(const Clash& clash) {
    const std::string reason = text_of(clash);
    const auto known = std::find(reasons_.begin(), reasons_.end(), reason);
    const auto at = static_cast<std::size_t>(known - reasons_.begin());
    if (known == reasons_.end()) reasons_.push_back(reason);
    static const std::string plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=%&#@!?$<>^~:;|/_'";
    static const std::vector<std::string> greek = {"α", "β", "γ", "δ", "ε", "ζ", "η", "θ", "λ", "μ",
                                                   "ξ", "π", "ρ", "σ", "τ", "φ", "χ", "ψ", "ω"};
    if (at < plain.size()) return plain.substr(at, 1);
    return at - plain.size() < greek.size() ? greek[at - plain.size()] : "*";
  }
  std::string text() {
    std::string out;
    for (const std::string& reason : reasons_) out += fmt::format("  {}  {}\n", letter_of(reason), reason);
    return out;
  }

 private:
  static std::string text_of(const Clash& clash) {
    const char* mark = clash.verdict == Verdict::not_read    ? " (not read)"
                       : clash.verdict == Verdict::gives_way ? " (gives way)"
                                                             : "";
    return std::string(clash.reason) + mark;
  }
  std::string letter_of(const std::string& reason) {
    Clash clash;
    clash.reason = reason;
    return letter(clash);
  }
  std::vector<std::string> reasons_;
};

std::string cell(const Group& row, const Group& column, Legend& legend) {
  const Choice &a = *row.choices.front(), &b = *column.choices.front();
  if (a.worded && b.worded && a.path == b.path) return "-";
  const auto clash = clash_between(a, b);
  return clash ? legend.letter(*clash) : ".";
}

// Removes trailing blanks.
std::string trimmed(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string layers_text() {
  std::string out = "\nLayers that each split divides; * divided, . whole on each of its ranks:\n";
  const std::vector<std::string> splits = {"tensor", "space", "time_chunks"};
  std::map<std::string, std::vector<std::string>> alike;  // layers with the same stars
  std::vector<std::string> order;
  for (const LayerTraits& layer : kLayers) {
    std::string stars;
    for (const std::string& split : splits) stars += fmt::format("{:<13}", layer.splits.contains(split) ? "*" : ".");
    if (!alike.contains(stars)) order.push_back(stars);
    alike[stars].emplace_back(layer.name);
  }
  out += trimmed(fmt::format("  {:<13}{:<13}{:<13}", splits[0], splits[1], splits[2]));
  for (const std::string& stars : order) out += fmt::format("  {}{}\n", stars, joined(alike[stars]));
  return out;
}

}  // namespace

std::string combinations_text() {
  const std::vector<Group> all = groups();
  std::size_t width = 0;
  for (const Group& group : all) width = std::max(width, group.text().size());
  // A gap separates the columns of different axes, except before the last column.
  const auto gap = [&](std::size_t i) {
    return i > 0 && i + 2 < all.size() && all[i].axis != all[i - 1].axis ? " " : "";
  };
  const std::string margin(10 + 2 + 1 + width + 1, ' ');
  std::string tens = margin, units = margin;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {  // only below the diagonal
    const std::size_t number = i + 1;
    tens += fmt::format("{}{}", gap(i), number >= 10 ? std::to_string(number / 10) : " ");
    units += fmt::format("{}{}", gap(i), number % 10);
  }
  std::string out =
      "Valid combinations. An entry is \".\" if two choices can be combined, a letter if they cannot\n"
      "(the reasons are below), and \"-\" if they are two values of one key. Columns have the numbers of the rows.\n\n";
  out += trimmed(tens) + trimmed(units);
  Legend legend;
  for (std::size_t row = 0; row < all.size(); ++row) {
    const bool first = row == 0 || all[row].axis != all[row - 1].axis;
    std::string line = fmt::format("{:<10}{:>2} {:<{}} ", first ? all[row].axis : "", row + 1, all[row].text(), width);
    for (std::size_t column = 0; column < row; ++column) {
      line += gap(column);
      line += cell(all[row], all[column], legend);
    }
    out += trimmed(line);
  }
  out +=
      "\n(not read): the key would do nothing, and is refused if it is given. (gives way): a key at its default\n"
      "changes its value by itself.\n\n";
  return out + legend.text() + layers_text();
}

}  // namespace echelon::inline config
