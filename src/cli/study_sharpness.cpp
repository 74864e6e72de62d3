// SPDX-License-Identifier: Apache-2.0
#include "cli/study_sharpness.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/log.hpp"
#include "checkpoint/saved_model.hpp"
#include "cli/opened_model.hpp"
#include "inference/sharpness.hpp"
#include "report/figures.hpp"

namespace echelon::cli {

double sharpness_of(const std::string& attempt, double epsilon) {
  try {
    const std::string run = std::filesystem::path(attempt).parent_path().string();
    const std::string data = find_model(run).config.data.train;
    OpenedModel opened = open_model({.model = run, .data = data, .device = {}}, {});
    return measure_sharpness(opened.model, opened.data, opened.saved.config, {.epsilon = epsilon}).value;
  } catch (const Error& error) {
    log_warning("study.sharpness: {}", error.what());
    return kUnknown;
  }
}

}  // namespace echelon::cli
