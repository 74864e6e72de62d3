// SPDX-License-Identifier: Apache-2.0
// Descriptions are parsed strictly, strategies give sensible answers, and forecasts follow from their definitions.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "comm/codec/coded_rows.hpp"
#include "comm/links/link_matrix.hpp"
#include "exchange/allreduce/gradient_codec.hpp"
#include "exchange/buckets.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "planner/plan_report.hpp"
#include "planner/strategy_models.hpp"
#include "tests/support/planner_scene.hpp"
#include "tests/support/process.hpp"

using namespace echelon;
using Catch::Contains;
using test::Scene;

TEST_CASE("a network is a preset with keys over it", "[planner]") {
  const NetworkModel plain = read_network("10gbit");
  CHECK(plain.network.between.bytes_per_s == Approx(9.4e9 / 8));
  CHECK(plain.ranks_per_host == 1);
  const NetworkModel rich = read_network("base=25gbit,ranks_per_host=8,inside=nvlink,latency_us=3,uncertainty=0.2");
  CHECK(rich.network.between.latency_s == Approx(3e-6));
  CHECK(rich.network.inside.bytes_per_s > 10 * rich.network.between.bytes_per_s);
  CHECK(rich.ranks_per_host == 8);
  CHECK(rich.scaled(0.5, 2).between.bytes_per_s == Approx(rich.network.between.bytes_per_s / 2));
  const NetworkModel tight = read_network("10gbit,hosts_per_switch=16,over_subscription=4");
  CHECK(tight.network.uplink_bytes_per_s == Approx(4 * tight.network.between.bytes_per_s));
  for (const std::string& preset : network_presets()) CHECK_NOTHROW(read_network(preset));
  CHECK_THROWS_WITH(read_network("10gbti"), Contains("did you mean '10gbit'"));
  CHECK_THROWS_WITH(read_network("10gbit,latency=3"), Contains("did you mean 'latency_us'"));
  CHECK_THROWS_WITH(read_network("10gbit,latency_us=fast"), Contains("expected a number"));
  CHECK_THROWS_WITH(read_network("10gbit,ranks_per_host=0"), Contains("1 to 1024"));
  CHECK_THROWS_WITH(read_network("nowhere.toml"), Contains("no such file"));
}

TEST_CASE("a measured network: medians, and keys over them", "[planner]") {
  const test::TempFolder folder;
  LinkMatrix links = LinkMatrix::of({"a", "b", "c"}, {0, 0, 1, 1, 2, 2});
  for (int from = 0; from < 6; ++from)
    for (int to = 0; to < 6; ++to) {
      if (from == to) continue;
      const bool inside = links.hosts[static_cast<std::size_t>(from)] == links.hosts[static_cast<std::size_t>(to)];
      links.latency_s[links.at(from, to)] = inside ? 1e-6 : 50e-6;
      links.bytes_per_s[links.at(from, to)] = inside ? 6e9 : from / 2 == 2 ? 1e8 : 1.25e8;  // c sends slowly
    }
  const std::string path = folder / "net.json";
  write_file_whole(path, link_matrix_json(links));
  const NetworkModel model = read_network(path);
  CHECK(model.network.between.bytes_per_s == Approx(1.25e8));
  CHECK(model.network.between.latency_s == Approx(50e-6));
  CHECK(model.network.inside.bytes_per_s == Approx(6e9));
  CHECK(model.ranks_per_host == 2);
  CHECK(model.uncertainty == Approx(0.2));
  CHECK_THAT(model.name, Contains("measured: " + path) && Contains("1 Gbit/s") && Contains("2 ranks a host"));
  const NetworkModel other = read_network(path + ",ranks_per_host=8,inside=nvlink,latency_us=3");
  CHECK(other.ranks_per_host == 8);
  CHECK(other.network.inside.bytes_per_s == Approx(2e11));
  CHECK(other.network.between.bytes_per_s == Approx(1.25e8));
  CHECK(other.network.between.latency_s == Approx(3e-6));
  CHECK(model.loaded_share(1000, true) == 1);  // not measured
  links.loaded = {{.hosts = 2, .ring_bytes_per_s = 1.25e8, .shuffle_bytes_per_s = 1e8},
                  {.hosts = 3, .ring_bytes_per_s = 1e8, .shuffle_bytes_per_s = 5e7}};
  write_file_whole(path, link_matrix_json(links));
  const NetworkModel crowded = read_network(path);
  CHECK(crowded.loaded_share(1, false) == 1);
  CHECK(crowded.loaded_share(2, true) == Approx(1));
  CHECK(crowded.loaded_share(2, false) == Approx(0.8));
  CHECK(crowded.loaded_share(3, true) == Approx(0.8));
  CHECK(crowded.loaded_share(1000, false) == Approx(0.4));
  std::fill(links.bytes_per_s.begin(), links.bytes_per_s.end(), 0.0);
  write_file_whole(path, link_matrix_json(links));
  CHECK_THROWS_WITH(read_network(path), Contains("no link between hosts was measured"));
  CHECK_THROWS_WITH(read_network("nowhere.json"), Contains("nowhere.json"));
}

TEST_CASE("a described step", "[planner]") {
  const StepModel step = described_step("samples=32,forward_ms=10,backward_ms=20,optimizer_ms=3,jitter=0.1", 64);
  CHECK(step.samples == 32);
  CHECK(step.total_s() == Approx(0.033));
  CHECK(step.of_samples(16).total_s() == Approx(0.018));  // the optimiser's time stays the same
  const StepModel rate = described_step("samples_per_s=100", 50);
  CHECK(rate.forward_s == Approx(0.5 / 3));
  CHECK(rate.total_s() == Approx(0.5));
  CHECK_THROWS_WITH(described_step("forward_ms=10", 64), Contains("forward_ms and backward_ms, or samples_per_s"));
  CHECK_THROWS_WITH(described_step("samples_per_s=10,jitter=-1", 64), Contains("0 to 3"));
  const std::string path = std::filesystem::temp_directory_path() / "echelon-step-test.toml";
  std::ofstream(path) << "[step]\nforward_ms = 1\nbackward_ms = 2\n[network]\nbase = \"1gbit\"\ngbit = 0.5\n";
  CHECK(described_step(path, 8).total_s() == Approx(0.003));
  CHECK(read_network(path).network.between.bytes_per_s == Approx(0.5e9 / 8));
  std::ofstream(path) << "[step]\nforward_ms = 1\nbackward_sm = 2\n";
  CHECK_THROWS_WITH(described_step(path, 8), Contains("forward_ms and backward_ms"));
  std::ofstream(path) << "[step]\nforward_ms = 1\nbackward_ms = 2\njiter = 2\n";
  CHECK_THROWS_WITH(described_step(path, 8), Contains(path + ":4:") && Contains("did you mean 'jitter'"));
  std::ofstream(path) << "[stop]\n";
  CHECK_THROWS_WITH(described_step(path, 8), Contains("no table [step]"));
  std::filesystem::remove(path);
}

TEST_CASE("a step measured in a run's rows", "[planner]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "echelon-measured-test";
  std::filesystem::create_directories(folder);
  {
    std::ofstream rows(folder / "metrics.jsonl");
    for (int i = 0; i < 21; ++i)
      rows << R"({"type":"step","step":)" << i + 1 << R"(,"time":{"total":)" << (i == 0 ? 9.0 : 0.13)
           << R"(,"data":0.01,"forward":0.03,"backward":0.06,"exchange":0.02,"optimizer":)"
           << (i % 2 == 0 ? 0.008 : 0.012) << R"(,"hooks":0,"other":0}})"
           << "\n";
    rows << R"({"type":"epoch","epoch":1})"
         << "\n";
  }
  RunRecord run;
  run.folder = folder, run.ranks = 2, run.batch_per_replica = {16, 16};
  const StepModel step = measured_step(run);
  CHECK(step.samples == 16);
  CHECK(step.forward_s == Approx(0.03));
  CHECK(step.optimiser_s == Approx(0.01));
  CHECK(step.total_s() == Approx(0.11).epsilon(0.02));  // without exchange; `other` is what the row leaves over
  CHECK(step.variation.measured_steps() == 20);
  std::ofstream(folder / "metrics.jsonl") << "{\"type\":\"step\",\n";
  CHECK_THROWS_AS(measured_step(run), DataError);
  std::filesystem::remove_all(folder);
  CHECK_THROWS_AS(measured_step(run), DataError);
}

TEST_CASE("buckets are ready from the loss backwards and needed from the input on", "[planner]") {
  Scene scene("synchronous");
  scene.config.exchange.bucket_mb = 0.01;
  const Workload work = workload_of(scene.config, scene.graph);
  REQUIRE(work.buckets.size() > 2);
  CHECK(work.elems == scene.graph.parameters().elems());
  for (std::size_t b = 0; b + 1 < work.buckets.size(); ++b) {
    CHECK(work.buckets[b].ready <= work.buckets[b + 1].ready);
    CHECK(work.buckets[b].needed >= work.buckets[b + 1].needed);
  }
  CHECK(work.buckets.back().ready == 1);
  CHECK(work.buckets.back().needed == 0);
}

TEST_CASE("onebit is priced by the bytes that its messages have", "[planner]") {
  Scene scene("synchronous");
  scene.config.exchange.codec = "onebit";
  scene.config.exchange.bucket_mb = 0.05;
  const ParameterSet& parameters = scene.graph.parameters();
  const Workload work = workload_of(scene.config, scene.graph);
  PlanPricer pricer(scene.network.network, 1);
  const StrategySetting setting{.config = scene.config, .work = work, .step = scene.step, .pricer = pricer};
  double bytes = 0;
  for (const GradientBucket& bucket : work.buckets) {
    const Collective sum = gradient_collective(setting, 4, bucket);
    bytes += sum.elem_bytes * static_cast<double>(sum.elems);
  }
  CHECK(bytes == Approx(static_cast<double>(onebit_bytes(parameters, {0, parameters.elems()}))));
  // The time of the whole follows these bytes. So many values that latencies do not count are sent by the rows of the
  // tensors, or uncoded.
  const auto allreduce_s = [&](bool coded) {
    Workload other = work;
    for (GradientBucket& bucket : other.buckets) {
      if (!coded) bucket.rows = {{.elems = bucket.elems, .row = 0}};
      bucket.elems *= 10'000;
    }
    return whole_allreduce_s(
        {.config = scene.config, .work = other, .step = scene.step, .pricer = pricer, .codec_takes_time = false}, 4, 1);
  };
  const double uncoded_bytes = 4 * static_cast<double>(parameters.elems());
  CHECK(allreduce_s(true) / allreduce_s(false) == Approx(bytes / uncoded_bytes).epsilon(0.01));
}

TEST_CASE("coded sums of onebit are priced by the bytes of their parts", "[planner]") {
  Scene scene("synchronous");
  scene.config.exchange.codec = "onebit";
  scene.config.exchange.code_sums = true;
  scene.config.exchange.bucket_mb = 0.05;
  const ParameterSet& parameters = scene.graph.parameters();
  const Workload work = workload_of(scene.config, scene.graph);
  PlanPricer pricer(scene.network.network, 1);
  const StrategySetting setting{.config = scene.config, .work = work, .step = scene.step, .pricer = pricer};
  for (const int k : {2, 4, 50}) {
    double priced = 0, exact = 0;
    for (const GradientBucket& bucket : work.buckets) {
      const Collective sum = gradient_collective(setting, k, bucket);
      CHECK(sum.algorithm == "direct");
      priced += 2.0 * (k - 1) * sum.elem_bytes * static_cast<double>(sum.elems);
    }
    for (const ArenaRange& range : make_buckets(parameters, 4, scene.config.exchange.bucket_mb * 1024 * 1024)) {
      const AllreduceRequest request{.rank = 0, .ranks = k, .elems = range.elems()};
      exact += codecs_of(scene.config.exchange, parameters, DType::f32, range, request).bytes("", request);
    }
    CHECK(priced == Approx(exact).epsilon(0.05));
  }
}

TEST_CASE("every strategy: one replica waits for nobody, more for no less, and a fast network for little",
          "[planner]") {
  for (const StrategyTraits& strategy : kStrategies) {
    Scene scene{std::string(strategy.name)};
    INFO(strategy.name);
    CHECK(scene.row(1).step_s == Approx(scene.step.total_s()));
    const double two = scene.row(2).step_s, many = scene.row(512).step_s;
    CHECK(two >= 0.97 * scene.step.total_s());
    CHECK(many >= 0.999 * two);
    scene.network = read_network("gbit=1e5,latency_us=0,inside_latency_us=0");
    scene.pricers = Pricers(scene.network, 1);
    CHECK(scene.row(8).step_s == Approx(scene.step.total_s()).epsilon(0.05));
    scene.step.variation = Variation::lognormal(0.1, 0);
    const double waits = scene.row(64).step_s / scene.step.total_s();
    CHECK(waits >= 0.98);
    CHECK(waits < 1.02 * scene.step.variation.largest_of(64) + 0.02);
  }
}

TEST_CASE("who waits for whom decides what jitter costs", "[planner]") {
  const auto cost = [](const std::string& strategy) {
    Scene scene(strategy);
    scene.network = read_network("gbit=1e5,latency_us=0,inside_latency_us=0");
    scene.pricers = Pricers(scene.network, 1);
    scene.step.variation = Variation::lognormal(0.2, 0);
    return scene.row(64).step_s / scene.step.total_s();
  };
  const double all = Variation::lognormal(0.2, 0).largest_of(64);
  CHECK(cost("synchronous") == Approx(all).epsilon(0.02));
  CHECK(cost("averaging") - 1 == Approx((all - 1) / std::sqrt(10)).epsilon(0.15));
  CHECK(cost("backup") < all - 0.1);
  CHECK(cost("gossip") < all);
  CHECK(cost("gossip") > 1.05);
  CHECK(cost("asynchronous") < 1.03);
  CHECK(cost("stale_synchronous") < cost("gossip"));
}

TEST_CASE("shares of a step sum to it, ranges hold it, strong scaling divides the batch", "[planner]") {
  Scene scene("synchronous");
  scene.config.exchange.codec = "fp16";
  scene.step.variation = Variation::lognormal(0.05, 0.02);
  for (const int k : {2, 64, 10'000}) {
    const ForecastRow row = scene.row(k, true);
    CHECK(row.compute_s + row.skew_s + row.codec_s + row.exchange_s == Approx(row.step_s));
    CHECK(row.low_s <= row.step_s);
    CHECK(row.high_s >= row.step_s);
    CHECK(row.samples == 64.0 * k);
    CHECK(row.efficiency == Approx(row.samples_per_s / k * scene.step.total_s() / 64));
  }
  CHECK(scene.row(2).simulated);
  CHECK(!scene.row(10'000).simulated);
  ForecastRequest strong = scene.request();
  strong.strong = true;
  CHECK(forecast_row(strong, 16).samples == Approx(64));
}

TEST_CASE("the knee is where a doubling no longer gives half of one", "[planner]") {
  Scene scene("synchronous");
  scene.config.exchange.algorithm = "naive";
  const Forecast naive = forecast(scene.request());
  REQUIRE(naive.rows.size() == 3);
  CHECK(naive.knee == 2);
  CHECK(naive.most_at_50 <= 2);
  const PlanReport report{.facts = {"fact"},
                          .main = naive,
                          .variants = {naive},
                          .meshes = {},
                          .points = {},
                          .cost = {.node_hour = 2, .currency = "CHF"},
                          .notes = {"a note"}};
  CHECK_THAT(plan_text(report, PlanFormat::text), Contains("Knee:") && Contains("up to 2") && Contains("note: a note"));
  CHECK_THAT(plan_text(report, PlanFormat::text), Contains("CHF / M samples"));
  CHECK_THAT(plan_text(report, PlanFormat::markdown), Contains("|") && Contains("## synchronous, naive"));
  const std::string csv = plan_csv(report);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 7);
  CHECK(plan_json(report)["plans"][0]["rows"].size() == 3);
}

TEST_CASE("numbers of replicas", "[planner]") {
  CHECK(replica_list("8..100") == std::vector<int>{8, 16, 32, 64, 100});
  CHECK(replica_list("4,2,4") == std::vector<int>{2, 4});
  CHECK(replica_list("7..7") == std::vector<int>{7});
  for (const char* wrong : {"", "0", "8..", "9..8", "a", "1,,2", "2000000"})
    CHECK_THROWS_WITH(replica_list(wrong), Contains("--replicas"));
}
