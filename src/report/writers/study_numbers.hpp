// SPDX-License-Identifier: Apache-2.0
// The numbers of study.json and study.csv by name. Each is listed once, for writing and for reading.
#pragma once

#include <array>
#include <string>

#include "base/text.hpp"
#include "report/evidence.hpp"
#include "report/writers/study.hpp"

namespace echelon::inline report {

struct RepetitionNumber {
  const char* name;
  double Repetition::*value;
};
inline constexpr std::array<RepetitionNumber, 19> kRepetitionNumbers = {{
    {"samples_per_s", &Repetition::samples_per_s},
    {"samples", &Repetition::samples},
    {"samples_to_target", &Repetition::samples_to_target},
    {"seconds_to_target", &Repetition::seconds_to_target},
    {"train_loss", &Repetition::train_loss},
    {"test_loss", &Repetition::test_loss},
    {"test_accuracy", &Repetition::test_accuracy},
    {"train_accuracy", &Repetition::train_accuracy},
    {"drift", &Repetition::drift},
    {"noise_scale", &Repetition::noise_scale},
    {"sharpness", &Repetition::sharpness},
    {"wire_bytes_per_step", &Repetition::bytes_per_step},
    {"down_bytes_per_step", &Repetition::down_bytes_per_step},
    {"warm_wire_bytes_per_step", &Repetition::warm_bytes_per_step},
    {"peak_rss_mb", &Repetition::peak_rss_mb},
    {"device_peak_mb", &Repetition::device_peak_mb},
    {"wall_s", &Repetition::wall_s},
    {"cpu_s", &Repetition::cpu_s},
    {"machine", &Repetition::machine},
}};

struct CurveNumber {
  const char* name;
  double Evaluation::*value;
};
inline constexpr std::array<CurveNumber, 5> kCurveNumbers = {{{"step", &Evaluation::step},
                                                              {"samples", &Evaluation::samples},
                                                              {"seconds", &Evaluation::seconds},
                                                              {"test_loss", &Evaluation::test_loss},
                                                              {"test_accuracy", &Evaluation::test_accuracy}}};

// The single numbers that settings have only in a study.
template <class Add>
void each_number(const Evidence& evidence, const Setting& s, const Add& add) {
  const RankCompute compute = compute_of(s.row);
  add("seconds_of_run", s.run_s);
  add("node_hours", evidence.node_hours(s));
  add("price", evidence.price(s));
  add("exchange_exposed_share", exposed_share(s.row));
  add("exchange_hidden_share", s.row.hidden_share());
  add("forward_flops_per_s", compute.forward_flops_per_s);
  add("backward_flops_per_s", compute.backward_flops_per_s);
  add("flops_per_weight_and_step", compute.flops_per_weight_and_step);
  add("card_peak_over_mean", compute.card_peak_over_mean);
}

template <class Add>
void each_spread(const Setting& s, const Add& add) {
  add("samples_per_s", s.row.rate);
  add("test_accuracy", s.row.accuracy);
  add("final_figure", s.final_figure);
  add("samples_to_target", s.samples);
  add("seconds_to_target", s.seconds);
}

// The part's name as a key: "micro_batch", "start_up".
inline std::string key_of(const BudgetPart& part) { return replaced(part.name, "-", "_"); }

}  // namespace echelon::inline report
