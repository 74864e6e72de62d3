// SPDX-License-Identifier: Apache-2.0
// Predictions of one config for several numbers of replicas, and the quantities derived from them:
//
//   rate(k)        samples per second of all replicas
//   efficiency(k)  rate(k) / (k rate(1)), where rate(1) is that of one replica, in a strong study with the whole batch
//   budget         shares of a step. compute: the step of one replica alone; skew, codec: the time that the step would
//                  save without variation, and without the codec's arithmetic; exchange: the rest
//   range          of the step: bandwidths changed by their uncertainty, latencies halved and doubled; variation
//   divided
//                  and multiplied by 1.25, or by 1.5 if k exceeds the number of measured steps; and the error of closed
//                  forms
//   knee           the most replicas for which doubling still gives half of a doubling: rate(2k) >= 1.5 rate(k)
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/network_model.hpp"
#include "planner/step_model.hpp"
#include "planner/strategy_models.hpp"
#include "planner/workload.hpp"

namespace echelon::inline planner {

struct ForecastRow {
  int replicas = 1;
  int ranks = 1, hosts = 1;
  double samples = 0;  // that all replicas train in a step
  double step_s = 0, low_s = 0, high_s = 0;
  double compute_s = 0, skew_s = 0, codec_s = 0, exchange_s = 0;  // sum to step_s
  double samples_per_s = 0, efficiency = 0;
  double memory = 0;       // bytes on a rank; 0: not computed
  bool simulated = false;  // every plan ran on virtual time; otherwise closed forms were used
  double error = 0;        // error of closed forms, as a fraction of exchange_s
};

struct Forecast {
  std::string title;  // "synchronous ring", "averaging every 10 steps, fp16"
  std::vector<ForecastRow> rows;
  int knee = 0;                        // 0: rates fall from the first row on
  int most_at_90 = 0, most_at_50 = 0;  // replicas with at least 90 %, 50 % efficiency; 0: none
};

// Number of ranks of one replica.
int model_group(const ParallelConfig& parallel);

// Caches the prices of collectives on the network and on its variants from forecast to forecast.
class Pricers {
 public:
  Pricers(const NetworkModel& network, int model_group) : network_(network), group_(model_group) {}
  PlanPricer& at(double rate, double latency);

 private:
  NetworkModel network_;
  int group_;
  std::map<std::pair<double, double>, PlanPricer> known_;
};

struct ForecastRequest {
  const Config& config;
  const Workload& work;
  StepModel step;       // one replica with its own batch
  bool strong = false;  // the global batch is constant: step.samples is that of one replica alone
  NetworkModel network;
  std::vector<int> replicas;
  Pricers& pricers;    // for this network and the config's mesh
  bool ranges = true;  // otherwise low_s = high_s = step_s
};

// Throws ConfigError as the strategy's plans do.
Forecast forecast(const ForecastRequest& request);
ForecastRow forecast_row(const ForecastRequest& request, int replicas);

// The share of the exchange beside compute that overlap hid in a run of this request's config, whose step took
// `measured_s`: 0 as if nothing overlapped, 1 as predicted. 1 if the prediction hides nothing.
double overlap_share(ForecastRequest request, int replicas, double measured_s);

// Reads "8..10000" as 8, 16, 32, .. and the last, or a list, "1,2,4". Throws ConfigError with an example otherwise.
std::vector<int> replica_list(const std::string& text);

}  // namespace echelon::inline planner
