// Predictions of one config for several numbers of replicas, and what follows from them.
//
//   rate(k)        samples a second of all replicas
//   efficiency(k)  rate(k) / (k rate(1)), where rate(1) is that of one replica with the batch of one of the k
//   budget         shares of a step: compute (= efficiency of a weak study); skew, codec: what the step gets shorter by
//                  without variation, and without the codec's arithmetic; exchange: the rest
//   range          of the step: the network faster and slower by its uncertainty with half and double the latency;
//                  variation smaller and larger by a quarter, by half where k exceeds the steps that were measured;
//                  and what closed forms may be wrong by
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
  double samples = 0;  // of a step of all replicas
  double step_s = 0, low_s = 0, high_s = 0;
  double compute_s = 0, skew_s = 0, codec_s = 0, exchange_s = 0;  // sum to step_s
  double samples_per_s = 0, efficiency = 0;
  double memory = 0;       // bytes of a rank; 0: not computed
  bool simulated = false;  // every plan ran on virtual time; else closed forms
  double error = 0;        // of closed forms, as a fraction of exchange_s
};

struct Forecast {
  std::string title;  // "synchronous ring", "averaging every 10 steps, fp16"
  std::vector<ForecastRow> rows;
  int knee = 0;                        // 0: rates fall from the first row on
  int most_at_90 = 0, most_at_50 = 0;  // replicas with at least 90 %, 50 % efficiency; 0: none
};

// Ranks of one replica.
int model_group(const ParallelConfig& parallel);

// Prices of collectives on the network and on its variants, kept from forecast to forecast.
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
  StepModel step;       // of one replica with the batch that it has
  bool strong = false;  // the batch of all replicas stays: step.samples is that of one replica alone
  NetworkModel network;
  std::vector<int> replicas;
  Pricers& pricers;    // of this network and the config's mesh
  bool ranges = true;  // else low_s = high_s = step_s
};

// ConfigError for what the strategy's plans refuse.
Forecast forecast(const ForecastRequest& request);
ForecastRow forecast_row(const ForecastRequest& request, int replicas);

// "8..10000": 8, 16, 32, .. and the last; or a list, "1,2,4". ConfigError with an example otherwise.
std::vector<int> replica_list(const std::string& text);

}  // namespace echelon::inline planner
