// The first lines of a run: who trains what, on what, how.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/device.hpp"
#include "exchange/strategy.hpp"
#include "report/status.hpp"
#include "train/launch.hpp"
#include "train/resume.hpp"
#include "train/run_folder.hpp"
#include "train/run_plan.hpp"

namespace echelon {

struct HeadParts {
  const Config& config;
  const RunPlan& plan;
  const Mesh& mesh;
  const Provenance& provenance;
  const Decision& start;
  const Seat& seat;
  const Device& device;
  const Strategy& strategy;
  int threads = 1;
  const std::vector<std::string>& notes;  // on the config
};

// Under 20 lines.
std::vector<std::string> head_lines(const HeadParts& parts);

// "0-2 a, 3 b": runs of equal entries by rank.
std::string by_rank_text(const std::vector<std::string>& entries);

// config.toml of an attempt: the effective config, which runs again as it is.
void write_attempt_config(const RunFolder& folder, const Config& config);

}  // namespace echelon
