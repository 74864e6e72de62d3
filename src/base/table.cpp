// SPDX-License-Identifier: Apache-2.0
// A table as text, Markdown and CSV.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/check.hpp"
#include "base/escape.hpp"
#include "base/text.hpp"

namespace echelon::inline base {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kGap = 2;        // spaces between columns
constexpr std::size_t kMostCell = 36;  // longest cell in characters before folding, if a table is too wide
constexpr std::size_t kLeastCell = 12;

// Counts the characters of UTF-8 text.
std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Returns the number of bytes that this many characters take.
std::size_t bytes_of(const std::string& text, std::size_t characters) {
  std::size_t at = 0;
  while (at < text.size() && (characters > 0 || (text[at] & 0xC0) == 0x80)) characters -= (text[at++] & 0xC0) != 0x80;
  return at;
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return right ? space + cell : cell + space;
}

bool begins_like_number(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  const std::size_t at = cell[0] == '-' || cell[0] == '+' || cell[0] == '~' ? 1 : 0;
  return at < cell.size() && std::isdigit(static_cast<unsigned char>(cell[at]));
}

// Breaks text into lines of at most `width` characters, between words, or inside words that are longer. Spaces between
// the words of a line stay.
Cells lines_of(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return {text};
  Cells lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = std::min(text.find_first_not_of(' ', at), text.size());
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string gap = text.substr(at, start - at);
    std::string word = text.substr(start, end - start);
    at = end;
    if (word.empty()) break;
    if (!line.empty() && display_width(line) + gap.size() + display_width(word) > width) {
      lines.push_back(line);
      line.clear();
    }
    while (display_width(word) > width) {
      const std::size_t part = bytes_of(word, width);
      lines.push_back(word.substr(0, part));
      word.erase(0, part);
    }
    line += (line.empty() && !lines.empty() ? "" : gap) + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines.empty() ? Cells{""} : lines;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    longest = std::max(longest, display_width(text.substr(at, space - at)));
    at = space + 1;
  }
  return longest;
}

// The layout of a table for a terminal: its cells as shown, and the width of each column.
struct Layout {
  Cells header;
  std::vector<Cells> rows;
  std::vector<bool> right;
  std::vector<std::size_t> width;

  std::size_t widest(std::size_t column) const {
    std::size_t most = 0;
    for (const Cells& row : rows) most = std::max(most, display_width(row[column]));
    return most;
  }
  std::size_t total(std::size_t from, std::size_t to) const {
    std::size_t sum = 0;
    for (std::size_t c = from; c < to; ++c) sum += width[c] + (c > from ? kGap : 0);
    return sum;
  }

  // Returns how many of the first columns are needed to tell all rows apart; one if rows are equal.
  std::size_t keys() const {
    for (std::size_t count = 1; count < header.size(); ++count) {
      std::set<Cells> seen;
      for (const Cells& row : rows) seen.insert(Cells(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count)));
      if (seen.size() == rows.size()) return count;
    }
    return 1;
  }

  // Folds headings and long cells over several lines.
  void fold() {
    for (std::size_t c = 0; c < header.size(); ++c)
      width[c] =
          std::max({std::min(longest_word(header[c]), kMostCell), std::min(widest(c), kMostCell), std::size_t{1}});
  }
  // Distributes the remaining room to the columns whose cells lack most.
  void spread(std::size_t columns) {
    const auto lacks = [&](std::size_t c) { return widest(c) - std::min(widest(c), width[c]); };
    for (std::size_t left = columns - total(0, header.size()); left > 0; --left) {
      std::size_t most = 0;
      for (std::size_t c = 1; c < header.size(); ++c)
        if (lacks(c) > lacks(most)) most = c;
      if (lacks(most) == 0) return;
      ++width[most];
    }
  }
  // Narrows the widest of the first `count` columns until together they take at most `most`.
  void narrow(std::size_t count, std::size_t most) {
    while (total(0, count) > most) {
      const auto last = width.begin() + static_cast<std::ptrdiff_t>(count);
      const auto widest_one = std::max_element(width.begin(), last);
      if (*widest_one <= kLeastCell) return;
      --*widest_one;
    }
  }

  // Returns the end columns of consecutive blocks, each of which begins with the first `keys` columns.
  std::vector<std::size_t> ends(std::size_t keys, std::size_t columns) const {
    const std::size_t left = columns - std::min(columns, total(0, keys));
    std::vector<std::size_t> out;
    for (std::size_t from = keys, to = from; from < header.size(); from = to) {
      while (to < header.size() && (to == from || total(from, to + 1) + kGap <= left)) ++to;
      out.push_back(to);
    }
    return out;
  }

  // Formats columns [0, keys) and [from, to).
  std::string block(std::size_t keys, std::size_t from, std::size_t to) const {
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < keys; ++c) shown.push_back(c);
    for (std::size_t c = from; c < to; ++c) shown.push_back(c);
    std::size_t rule = kGap * (shown.size() - 1);
    for (const std::size_t c : shown) rule += width[c];
    const auto line = [&](const Cells& cells, bool low) {  // `low`: aligns short cells at the bottom
      std::vector<Cells> parts;
      std::size_t height = 1;
      for (const std::size_t c : shown)
        height = std::max(height, parts.emplace_back(lines_of(cells[c], width[c])).size());
      std::string out;
      for (std::size_t l = 0; l < height; ++l) {
        std::string text;
        for (std::size_t i = 0; i < shown.size(); ++i) {
          const std::size_t above = low ? height - parts[i].size() : 0;
          const std::string cell = l < above || l - above >= parts[i].size() ? "" : parts[i][l - above];
          text += (i ? std::string(kGap, ' ') : "") + padded(cell, width[shown[i]], right[shown[i]]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
      }
      return out;
    };
    std::string out = line(header, true) + std::string(rule, '-') + "\n";
    for (const Cells& row : rows) out += line(row, false);
    return out;
  }
};

std::string one_line(const std::string& cell) {
  std::string out = escaped_for_terminal(cell);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  ECHELON_CHECK_EQ(cells.size(), header_.size(), "a table row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::vector<bool> Table::right_set() const {
  std::vector<bool> right(header_.size(), !rows_.empty());
  for (std::size_t c = 0; c < header_.size(); ++c)
    for (const auto& row : rows_) right[c] = right[c] && begins_like_number(row[c]);
  return right;
}

std::string Table::text(std::size_t columns) const {
  Layout layout{.header = header_, .rows = rows_, .right = right_set(), .width = {}};
  for (std::string& cell : layout.header) cell = one_line(cell);
  for (Cells& row : layout.rows)
    for (std::string& cell : row) cell = one_line(cell);
  const std::size_t count = header_.size();
  for (std::size_t c = 0; c < count; ++c)
    layout.width.push_back(std::max(display_width(layout.header[c]), layout.widest(c)));
  if (layout.total(0, count) <= columns) return layout.block(0, 0, count);
  Layout plain = layout;
  layout.fold();
  if (layout.total(0, count) <= columns) {
    layout.spread(columns);
    return layout.block(0, 0, count);
  }
  // Folds headings only if that saves a block.
  const std::size_t keys = layout.keys();
  for (std::size_t& width : plain.width) width = std::min(width, kMostCell);
  for (Layout* either : {&layout, &plain}) either->narrow(keys, columns / 2);
  if (plain.ends(keys, columns).size() <= layout.ends(keys, columns).size()) layout = plain;
  std::string out;
  std::size_t from = keys;
  for (const std::size_t to : layout.ends(keys, columns)) {
    out += (out.empty() ? "" : "\n") + layout.block(keys, from, to);
    from = to;
  }
  return out;
}

std::string Table::markdown() const {
  Cells header;
  for (const std::string& cell : header_) header.push_back(escaped_for_markdown(cell));
  std::vector<Cells> rows;
  for (const Cells& row : rows_) {
    Cells& cells = rows.emplace_back();
    for (const std::string& cell : row) cells.push_back(escaped_for_markdown(cell));
  }
  std::vector<std::size_t> width;
  for (std::size_t c = 0; c < header.size(); ++c) {
    width.push_back(display_width(header[c]));
    for (const Cells& row : rows) width[c] = std::max(width[c], display_width(row[c]));
  }
  const std::vector<bool> right = right_set();
  const auto line = [&](const Cells& cells) {
    std::string out = "|";
    for (std::size_t c = 0; c < cells.size(); ++c) out += " " + padded(cells[c], width[c], right[c]) + " |";
    return out + "\n";
  };
  std::string out = line(header) + "|";
  for (std::size_t c = 0; c < header.size(); ++c) out += std::string(width[c] + 1, '-') + (right[c] ? ":|" : "-|");
  out += "\n";
  for (const Cells& row : rows) out += line(row);
  return out;
}

std::string Table::csv() const {
  const auto line = [](const Cells& cells) {
    std::string out;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      std::string cell = cells[c];
      if (cell.find_first_of(",\"\r\n") != std::string::npos) {
        for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, "\"");
        cell = "\"" + cell + "\"";
      }
      if (c > 0) out += ',';
      out += cell;
    }
    return out + "\n";
  };
  std::string out = line(header_);
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string folded_text(const std::string& text, std::size_t columns, const std::string& first,
                        const std::string& rest) {
  const std::size_t width = columns - std::min(columns, std::max(display_width(first), display_width(rest)));
  std::string out;
  for (const std::string& line : lines_of(text, std::max<std::size_t>(width, 1)))
    out += (out.empty() ? first : rest) + line + "\n";
  return out;
}

}  // namespace echelon::inline base
