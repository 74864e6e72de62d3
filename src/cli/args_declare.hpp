// SPDX-License-Identifier: Apache-2.0
// Shared by the files that declare verbs (args_verbs.cpp, args_bench.cpp, ..).
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/args_verbs.hpp"

namespace echelon::cli {

inline void add_sets(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--set", sets,
                 "section.key=value, over environment and file; section.key= is the default; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

// Accepts a number from `low` to `high`. CLI::Range would let NaN pass.
inline CLI::Validator number_in(double low, double high) {
  return CLI::Validator(
      [low, high](const std::string& text) {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && value >= low && value <= high
                   ? std::string()
                   : fmt::format("'{}' is not from {:g} to {:g}", text, low, high);
      },
      "NUMBER");
}

// Allocates a verb's options, which live as long as its runner.
template <class Options>
std::shared_ptr<Options> held() {
  return std::make_shared<Options>();
}

Run declare_supervise(CLI::App& app);
Run declare_completion(CLI::App& app);
Run declare_manual(CLI::App& app);

// Verbs that use trained models.
Run declare_predict(CLI::App& app);
Run declare_eval(CLI::App& app);
Run declare_export(CLI::App& app);

// Verbs that read runs or predict them.
Run declare_report(CLI::App& app);
Run declare_compare(CLI::App& app);
Run declare_plan(CLI::App& app);
Run declare_sweep_micro(CLI::App& app);

// Verbs `bench ..`.
Run declare_bench_step(CLI::App& app);
Run declare_bench_update(CLI::App& app);
Run declare_bench_allreduce(CLI::App& app);
Run declare_bench_network(CLI::App& app);
Run declare_bench_data(CLI::App& app);
Run declare_bench_codec(CLI::App& app);
Run declare_bench_control(CLI::App& app);

}  // namespace echelon::cli
