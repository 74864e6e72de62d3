// SPDX-License-Identifier: Apache-2.0
#include "run/staleness.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"

namespace echelon::inline run {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json to_json(const StalenessTally& worker) {
  ordered_json histogram = ordered_json::array();
  for (const auto& [staleness, updates] : worker.histogram) histogram.push_back({staleness, updates});
  return {{"applied", worker.applied}, {"dropped", worker.dropped},    {"mean", worker.mean()},
          {"largest", worker.most},    {"waited_s", worker.longest_s}, {"meeting_s", worker.meeting_s},
          {"histogram", histogram}};
}

StalenessTally from_json(const json& worker) {
  StalenessTally tally;
  for (const json& entry : worker.at("histogram")) {
    const auto staleness = entry.at(0).get<std::int64_t>();
    const auto updates = entry.at(1).get<std::uint64_t>();
    tally.histogram[staleness] = updates;
    tally.sum += static_cast<double>(staleness) * static_cast<double>(updates);
  }
  tally.applied = worker.at("applied");
  tally.dropped = worker.at("dropped");
  tally.most = worker.at("largest");
  tally.longest_s = worker.at("waited_s");
  tally.meeting_s = worker.at("meeting_s");
  return tally;
}

std::string staleness_json(const std::vector<StalenessTally>& workers) {
  ordered_json all = {{"format", "echelon-staleness"}, {"version", 1}, {"workers", ordered_json::array()}};
  for (const StalenessTally& worker : workers) all["workers"].push_back(to_json(worker));
  return all.dump();
}

}  // namespace

std::vector<StalenessTally> gather_staleness(const std::vector<StalenessTally>& own, Group& world) {
  std::vector<StalenessTally> all;
  for (const std::string& text : world.gather(staleness_json(own))) {
    const json workers = json::parse(text).at("workers");
    all.resize(std::max(all.size(), workers.size()));
    for (std::size_t w = 0; w < workers.size(); ++w) all[w] += from_json(workers[w]);
  }
  return all;
}

void write_staleness(const std::vector<StalenessTally>& workers, const RunFolder& folder) {
  if (!workers.empty()) write_file_whole(folder.attempt + "/staleness.json", staleness_json(workers) + "\n");
}

void take_staleness(const std::vector<StalenessTally>& workers, RunFigures& run) {
  if (workers.empty()) return;
  StalenessFigures& by_worker = run.staleness_by_worker.emplace();
  StalenessTally all;
  for (const StalenessTally& worker : workers) {
    by_worker.applied.push_back(static_cast<double>(worker.applied));
    by_worker.dropped.push_back(static_cast<double>(worker.dropped));
    by_worker.mean.push_back(worker.mean());
    by_worker.largest.push_back(static_cast<double>(worker.most));
    by_worker.waited_s.push_back(worker.longest_s);
    all += worker;
  }
  run.updates_applied = static_cast<double>(all.applied);
  run.updates_dropped = static_cast<double>(all.dropped);
  run.staleness_mean = all.mean();
  run.staleness_largest = static_cast<double>(all.most);
}

}  // namespace echelon::inline run
