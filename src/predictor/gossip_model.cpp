// Strategy gossip: a replica waits for its neighbours alone, and for all where the mean is formed.
#include <algorithm>

#include "exchange/gossip/topology.hpp"
#include "predictor/pace.hpp"
#include "predictor/strategy_models.hpp"

namespace echelon::inline predictor {

double gossip_step_s(const StrategySetting& setting, int replicas) {
  setting.pricer.note_formula();
  const GossipKeys& keys = setting.exchange().gossip;
  const double receivers = static_cast<double>(GossipGraph(keys, replicas, 1).links()) / replicas;
  const bool one_host = replicas <= setting.pricer.ranks_a_host();
  const Link& link = one_host ? setting.network().inside : setting.network().between;
  const double sharers = one_host ? 1 : std::min(setting.pricer.ranks_a_host(), replicas);
  const double segments = std::max(1.0, setting.work.bytes() / (setting.exchange().segment_kb * 1024));
  const double mixing_s =
      sharers * receivers * (setting.work.bytes() / link.bytes_per_s + segments * link.latency_s / 2) +
      link.latency_s / 2;
  const double pace = neighbour_pace(setting.step.variation, replicas, keys);
  const double compute_s = setting.step.total_s() * pace;
  const double mean_s = whole_allreduce_s(setting, replicas, 1) / static_cast<double>(keys.consensus_every);
  return (keys.order == MixingOrder::mix_before ? std::max(compute_s, mixing_s) : compute_s + mixing_s) + mean_s;
}

}  // namespace echelon::inline predictor
