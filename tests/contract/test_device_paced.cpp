// SPDX-License-Identifier: Apache-2.0
// The paced device takes the time that its table says, computes nothing, and keeps the rest of the contract.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/paced/paced.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/process.hpp"
#include "tests/support/stored.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

double seconds_of_runs(Device& device, const OpSpec& spec, int runs) {
  const auto op = device.make(spec);
  const double start = now_s();
  for (int i = 0; i < runs; ++i) op->run({});
  device.synchronize();
  return now_s() - start;
}

// Tells whether a try takes less than `most_s`: a busy machine may wake some tries late. No try may take less than
// `least_s`. Each try has its own device, because a device that woke late would take less the next time.
bool takes(const DeviceOptions& options, const OpSpec& spec, int runs, double least_s, double most_s) {
  constexpr int kTries = 100;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double seconds = seconds_of_runs(*make_paced_device(options), spec, runs);
    CHECK(seconds >= least_s);
    if (seconds < most_s) return true;
  }
  return false;
}

const OpSpec kDense{OpKind::dense_forward, DType::f32, DenseDims{.N = 8, .F = 20, .K = 10}, {}};

}  // namespace

TEST_CASE("the paced device keeps the contract of memory and vectors, and builds every kind", "[device]") {
  const auto device = make_paced_device({});
  CHECK_FALSE(device->computes());
  for (const std::string& failure : check_memory(*device)) FAIL_CHECK(failure);
  for (const std::string& failure : check_vector_ops(*device, DType::f32, 1e-6)) FAIL_CHECK(failure);
  for (const OpSpec& spec : contract_specs(DType::f32)) {
    INFO(spec.text());
    CHECK(device->make(spec)->implementation().find("sleeps") == 0);
  }
}

TEST_CASE("a paced op takes its tabled time, however short", "[device]") {
  const TempFolder folder;
  write_file_whole(folder / "table.json", "{\"" + kDense.text() + "\": 0.004}");
  const DeviceOptions tabled{.paced_table = folder / "table.json"};
  CHECK(takes(tabled, kDense, 10, 0.0399, 0.06));
  CHECK(make_paced_device(tabled)->make(kDense)->implementation() == "sleeps 4.00 ms (table)");

  write_file_whole(folder / "short.json", "{\"" + kDense.text() + "\": 3e-6}");
  CHECK(takes({.paced_table = folder / "short.json"}, kDense, 10000, 0.0299, 0.045));
}

TEST_CASE("a paced op without a row takes its arithmetic and its traffic", "[device]") {
  // 2*8*20*10 flops at 1 Mflop/s: 3.2 ms. Traffic of (160 + 200 + 10 + 80) * 4 bytes at 1 MB/s: 1.8 ms.
  const DeviceOptions rates{.paced_gflops = 1e-3, .paced_gb_per_s = 1e-3};
  CHECK(takes(rates, kDense, 4, 4 * 5.0e-3 - 1e-4, 4 * 5.0e-3 + 0.01));
  CHECK(make_paced_device(rates)->make(kDense)->implementation() == "sleeps 5.00 ms (rates)");
}

TEST_CASE("a paced op and a paced update leave their outputs alone", "[device]") {
  const auto device = make_paced_device({.paced_gb_per_s = 1e-3});
  const OpSpec spec{OpKind::add, DType::f32, ElementwiseDims{Shape{4}}, {}};
  const Bytes ones = to_stored({1, 1, 1, 1}, DType::f32, Shape{4}, Layout::plain);
  const Guarded a(*device, ones, 0), b(*device, ones, 0), y(*device, ones, 0);
  void* const tensors[] = {a.data(), b.data(), y.data()};
  OpArgs args;
  args.tensors = tensors;
  device->make(spec)->run(args);
  CHECK(y.content() == ones);

  std::vector<float> w(1000, 1.0F), g(1000, 1.0F), v(1000);
  void* const states[] = {v.data()};
  const auto fresh = make_paced_device({.paced_gb_per_s = 1e-3});
  const double start = now_s();
  fresh->make_update("sgd", DType::f32)->apply(w.data(), g.data(), states, w.size(), {});
  fresh->synchronize();
  CHECK(now_s() - start >= 0.0199);  // 5 * 4000 bytes at 1 MB/s
  CHECK(w == std::vector<float>(1000, 1.0F));
}

TEST_CASE("a paced table that is none is refused with its file and row", "[device]") {
  const TempFolder folder;
  const std::string path = folder / "table.json";
  const auto open = [&](const char* text) {
    write_file_whole(path, text);
    return make_paced_device({.paced_table = path});
  };
  CHECK_THROWS_AS(make_paced_device({.paced_table = folder / "none.json"}), EnvironmentError);
  CHECK_THROWS_AS(open("[1, 2]"), ConfigError);
  CHECK_THROWS_AS(open("{\"a\": 1"), ConfigError);
  CHECK_THROWS_WITH(open(R"({"conv": -1})"), Catch::Contains(path) && Catch::Contains("'conv'"));
  CHECK_THROWS_WITH(open(R"({"conv": "fast"})"), Catch::Contains("a number of seconds"));
}
