// SPDX-License-Identifier: Apache-2.0
// Windows of many kinds on rows of images must end with the weights of the unsplit model, in double.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/image_models.hpp"
#include "tests/support/space_runs.hpp"

namespace echelon {
namespace {

using namespace test;

// "discrete" computes the inner rows while the others travel; the host computes all at once.
constexpr const char* kDevices[] = {"reference", "discrete"};

SplitRun short_run(const Graph& graph, int spatial_shards, const char* device) {
  SplitRun run = space_of(graph, spatial_shards, {4}, 2);
  run.replicas.device = device;
  run.replicas.steps = 3;
  return run;
}

TEST_CASE("rows: every window", "[split][space]") {
  for (const char* type : {"conv", "max_pool", "avg_pool", "avg_pool counted"})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t kernel : {1, 2, 3, 4, 5})
        for (std::int64_t padding = 0; padding < std::min<std::int64_t>(kernel, 3); ++padding)
          for (const int spatial_shards : {2, 3, 4}) {
            const WindowCase window{type, kernel, stride, padding, 2 * spatial_shards + kernel % 3};
            for (const char* device : kDevices) {
              INFO(window.text() << " s=" << spatial_shards << " " << device);
              check_split(short_run(one_window(window), spatial_shards, device));
            }
          }
}

TEST_CASE("rows: windows one behind another and beside one another", "[split][space]") {
  int fit = 0;
  for (int number = 0; number < 12; ++number)
    for (const int spatial_shards : {2, 3, 4})
      for (const char* device : kDevices) {
        const Graph graph = random_windows(fmt::format("windows {}", number));
        INFO("windows " << number << " s=" << spatial_shards << " " << device);
        if (!fits(graph, spatial_shards)) continue;
        check_split(short_run(graph, spatial_shards, device));
        ++fit;
      }
  CHECK(fit > 30);
}

TEST_CASE("slabs: volumes of random extents with random windows", "[split][space]") {
  int fit = 0;
  for (int number = 0; number < 8; ++number)
    for (const int spatial_shards : {2, 4})
      for (const char* device : kDevices) {
        const Graph graph = random_volumes(fmt::format("volumes {}", number));
        INFO("volumes " << number << " s=" << spatial_shards << " " << device);
        if (!fits(graph, spatial_shards)) continue;
        check_split(short_run(graph, spatial_shards, device));
        ++fit;
      }
  CHECK(fit > 15);
}

TEST_CASE("rows: windows of stages and of shards", "[split][space]") {
  for (const char* type : {"conv", "max_pool", "avg_pool"})
    for (const char* device : kDevices) DYNAMIC_SECTION(type << " " << device) {
        SplitRun run = short_run(one_window({type, 3, 2, 1, 5}), 2, device);
        run.parallel.pipeline = 2;
        check_split(run);
        run = short_run(one_window({type, 5, 3, 2, 5}), 2, device);
        run.parallel.tensor = 2;
        check_split(run);
      }
}

}  // namespace
}  // namespace echelon
