// SPDX-License-Identifier: Apache-2.0
#include "report/wire_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/error.hpp"

namespace echelon::inline report {
namespace {

std::string mb(double bytes) { return fmt::format("{:.3f}", bytes / 1e6); }

}  // namespace

WireBytes read_wire(const std::string& attempt) {
  const std::string path = attempt + "/wire.json";
  if (!std::filesystem::exists(path)) return {};
  try {
    const nlohmann::json json = nlohmann::json::parse(read_file_whole(path));
    WireBytes bytes = json.at("bytes").get<WireBytes>();
    const double steps = std::max(1.0, json.at("steps").get<double>());
    for (std::vector<double>& row : bytes) {
      if (row.size() != bytes.size()) throw DataError(fmt::format("{}: the matrix is not square", path));
      for (double& value : row) value /= steps;
    }
    return bytes;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: cannot be read: {}", path, error.what()));
  }
}

Table wire_table(const WireBytes& bytes) {
  if (bytes.empty() || bytes.size() > kWireTableRanks) return Table({"from \\ to"});
  std::vector<std::string> header = {"from \\ to"};
  for (std::size_t to = 0; to < bytes.size(); ++to) header.push_back(std::to_string(to));
  header.emplace_back("sum");
  Table table(header);
  std::vector<double> received(bytes.size() + 1, 0.0);
  for (std::size_t from = 0; from < bytes.size(); ++from) {
    std::vector<std::string> cells = {std::to_string(from)};
    double sent = 0;
    for (std::size_t to = 0; to < bytes.size(); ++to) {
      cells.push_back(bytes[from][to] > 0 ? mb(bytes[from][to]) : "");
      sent += bytes[from][to];
      received[to] += bytes[from][to];
    }
    received.back() += sent;
    cells.push_back(mb(sent));
    table.row(std::move(cells));
  }
  std::vector<std::string> cells = {"sum"};
  for (const double sum : received) cells.push_back(mb(sum));
  table.row(std::move(cells));
  return table;
}

std::string wire_text(const WireBytes& bytes, const RunFigures& run) {
  if (bytes.empty()) return {};
  double all = 0;
  for (const std::vector<double>& row : bytes) all = std::accumulate(row.begin(), row.end(), all);
  std::string text = fmt::format("All ranks sent {} MB per step", mb(all));
  if (std::isfinite(run.wire_bytes_per_step))
    text += fmt::format(", {} MB of them for gradients and weights", mb(run.wire_bytes_per_step));
  if (std::isfinite(run.formula_bytes_per_step))
    text += fmt::format("; the formula gives {} MB", mb(run.formula_bytes_per_step));
  return text + ".";
}

}  // namespace echelon::inline report
