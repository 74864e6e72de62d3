// SPDX-License-Identifier: Apache-2.0
#include "comm/link_probe.hpp"

#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "comm/group.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::int64_t kSmall = 8, kLarge = 1 << 20;  // bytes
constexpr int kMostHosts = 7;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class Probe {
 public:
  Probe(Engine& engine, int channel)
      : engine_(engine), group_(engine, channel), channel_(channel), data_(static_cast<std::size_t>(kLarge)) {}

  // Returns half of a round trip between ranks a and b; every rank calls it.
  double one_way_s(int a, int b, std::int64_t bytes, int rounds) {
    const int me = engine_.rank();
    std::vector<double> times;
    group_.barrier();
    if (me == a || me == b) {
      const ElemRange all{0, bytes};
      const Step send{.kind = StepKind::send, .peer = me == a ? b : a, .range = all, .after = {me == a ? -1 : 0, -1}};
      const Step recv{.kind = StepKind::recv, .peer = me == a ? b : a, .range = all, .after = {me == a ? 0 : -1, -1}};
      const auto plan = std::make_shared<ListedPlan>(
          "ping-pong", me == a ? std::vector<Step>{send, recv} : std::vector<Step>{recv, send});
      for (int round = -2; round < rounds; ++round) {
        const double start_s = engine_.clock().now_s();
        Job job;
        job.plan = plan;
        job.data = data_.data();
        job.dtype = DType::u8;
        job.channel = channel_;
        engine_.run(std::move(job));
        if (round >= 0) times.push_back((engine_.clock().now_s() - start_s) / 2);
      }
    }
    double time_s = me == a ? median(times) : 0;
    group_.broadcast(&time_s, sizeof time_s, a);
    return time_s;
  }

  Link link(int a, int b) {
    Link link;
    link.latency_s = one_way_s(a, b, kSmall, 31);
    const double large_s = one_way_s(a, b, kLarge, 7);
    link.bytes_per_s = static_cast<double>(kLarge) / std::max(large_s - link.latency_s, large_s / 10);
    return link;
  }

  // The rate of this rank; the caller uses that of the slowest.
  double add_rate() {
    std::vector<float> sum(kLarge / sizeof(float)), more(sum.size());
    std::vector<double> times;
    for (int round = 0; round < 5; ++round) {
      const double start_s = now_s();
      host_vector_ops().add(DType::f32, sum.data(), more.data(), sum.size());
      times.push_back(now_s() - start_s);
    }
    return static_cast<double>(kLarge) / group_.max(median(times));
  }

 private:
  Engine& engine_;
  Group group_;
  int channel_;
  std::vector<std::byte> data_;
};

}  // namespace

Network probe_network(Engine& engine, int channel) {
  const std::vector<int>& hosts = engine.transport().hosts();
  Network network;
  if (engine.size() == 1) return network;
  std::vector<std::vector<int>> ranks(hosts.size());  // by host
  for (std::size_t r = 0; r < hosts.size(); ++r)
    ranks[static_cast<std::size_t>(hosts[r])].push_back(static_cast<int>(r));

  Probe probe(engine, channel);
  network.add_bytes_per_s = probe.add_rate();
  const auto crowded = std::find_if(ranks.begin(), ranks.end(), [](const auto& host) { return host.size() > 1; });
  if (crowded != ranks.end()) network.inside = probe.link((*crowded)[0], (*crowded)[1]);
  int others = 0;
  for (std::size_t host = 1; host < ranks.size() && !ranks[host].empty() && others < kMostHosts; ++host, ++others) {
    const Link link = probe.link(ranks[0][0], ranks[host][0]);
    if (others > 0) {
      network.between.latency_s = std::max(network.between.latency_s, link.latency_s);
      network.between.bytes_per_s = std::min(network.between.bytes_per_s, link.bytes_per_s);
    } else {
      network.between = link;
    }
  }
  if (crowded == ranks.end()) network.inside = network.between;
  if (others == 0) network.between = network.inside;
  return network;
}

}  // namespace echelon::inline comm
