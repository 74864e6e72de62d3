// The run banner: model, data, ranks, devices and exchange of a run.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "device/device.hpp"
#include "exchange/strategy.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"
#include "run/resume.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

struct BannerParts {
  const Config& config;
  const RunPlan& plan;
  const Mesh& mesh;
  const Provenance& provenance;
  const Decision& start;
  const HostSlot& slot;
  const Device& device;
  const Strategy& strategy;
  int threads = 1;
  const std::vector<std::string>& notes;  // on the config
};

// About 10 to 20 lines, each "<label of 10 columns><facts>". Pure; rank 0 logs them. Costs an estimate of the FLOPs of
// the graph.
std::vector<std::string> banner_lines(const BannerParts& parts);

// The launches that end with the same bits under train.reproducible: "1, 2, 4, .. 8 replicas".
std::string same_bits_text(const Config& config, const Mesh& mesh);

// "0-2: a; 3: b": equal entries of neighbouring ranks together; of one rank its entry alone.
std::string by_rank_text(const std::vector<std::string>& entries);

// Writes config.toml of an attempt: the effective config, with which the run can be repeated. EnvironmentError.
void write_attempt_config(const RunFolder& folder, const Config& config);

}  // namespace echelon::inline run
