// SPDX-License-Identifier: Apache-2.0
// The CUDA device on a real GPU: the contract of devices, and errors that only a device that runs ahead of its host can
// make.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>

#include "base/error.hpp"
#include "device/device.hpp"
#include "device/upload.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// Shapes of the table that no zoo model has may run as plain loops.
std::unique_ptr<Device> open_with_fallback() {
  DeviceOptions options;
  options.allow_fallback = true;
  return open_device("cuda", options);
}

void check_contract(DType dtype, double tolerance) {
  const auto device = open_with_fallback();
  std::printf("%s: %s\n", std::string(name_of(dtype)).c_str(), device->describe().c_str());
  for (const std::string& failure : check_device(*device, dtype, tolerance)) FAIL_CHECK(failure);
  SUCCEED();
}

// Values of all arguments of one run of `spec`, on the device.
struct Arguments {
  // Uses the `saved` memory of another op, or its own.
  Arguments(Device& device, const OpSpec& spec, Op& op, void* twins = nullptr)
      : scratch(device.allocate(op.scratch_bytes(), "scratch")),
        saved(device.allocate(twins ? 0 : op.saved_bytes(), "saved")) {
    for (const ArgInfo& arg : signature(spec)) {
      const std::vector<double> random = random_values(static_cast<std::size_t>(arg.shape.elems()), arg.name);
      const std::vector<float> values(random.begin(), random.end());
      memory.push_back(device.allocate(values.size() * sizeof(float), arg.name));
      device.to_device(memory.back().data(), values.data(), memory.back().bytes());
      tensors.push_back(memory.back().data());
    }
    args.tensors = tensors.data();
    args.scratch = scratch.data();
    args.saved = twins ? twins : saved.data();
    args.parameter_version = 1;
  }
  std::vector<float> value(Device& device, std::size_t a) const {
    std::vector<float> values(memory[a].bytes() / sizeof(float));
    device.to_host(values.data(), memory[a].data(), memory[a].bytes());
    return values;
  }

  Memory scratch, saved;
  std::vector<Memory> memory;
  std::vector<void*> tensors;
  OpArgs args;
};

std::unique_ptr<Device> open_with(int index, std::int64_t memory_limit_bytes) {
  DeviceOptions options;
  options.index = index;
  options.memory_limit_bytes = memory_limit_bytes;
  return open_device("cuda", options);
}

bool is_conv(OpKind kind) {
  return kind == OpKind::conv_forward || kind == OpKind::conv_backward_data || kind == OpKind::conv_backward_weights;
}

}  // namespace

TEST_CASE("the CUDA device keeps the contract of devices in f32", "[cuda][slow]") {
  if (without_gpu()) return;
  check_contract(DType::f32, 1e-5);
}

TEST_CASE("the CUDA device keeps the contract of devices in f64", "[cuda][slow]") {
  if (without_gpu()) return;
  check_contract(DType::f64, 1e-12);
}

TEST_CASE("the CUDA device keeps the contract of devices in halves", "[cuda][slow]") {
  if (without_gpu()) return;
  check_contract(DType::f16, 2e-3);
  check_contract(DType::bf16, 2e-2);
}

TEST_CASE("convolutions name what runs them", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_with_fallback();
  std::map<std::string, int> found;
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const OpSpec& spec : contract_specs(dtype)) {
      if (!is_conv(spec.kind)) continue;
      const std::string implementation = device->make(spec)->implementation();
      CHECK(!implementation.empty());
      ++found[std::string(name_of(spec.kind)) + " " + std::string(name_of(dtype)) + ": " + implementation];
    }
  for (const auto& [name, count] : found) std::printf("%4d  %s\n", count, name.c_str());
}

TEST_CASE("no convolution of the zoo runs as a plain loop", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_with_fallback();
  for (const char* model : {"resnet50", "resnet20", "cnn_32_64", "vgg16"})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      INFO(model << " " << name_of(dtype));
      const Graph graph = build_zoo(model, zoo_form(model));
      Arenas arenas(*device, graph.parameters(), DType::f32);
      Program program(graph, arenas, {.batch = 16, .dtype = dtype});
      arenas.initialise(1);
      load_batch(*device, program, hashed_batch(form_of(graph), 0, 16, 1));
      program.forward({});  // an algorithm may be refused at run time
      program.backward({});
      device->synchronize();
      int convolutions = 0;
      for (const OpReport& op : program.ops()) {
        if (!is_conv(op.spec.kind)) continue;
        ++convolutions;
        INFO(op.spec.text());
        CHECK_THAT(op.implementation, !Catch::Contains("ref"));
      }
      CHECK(convolutions > 0);
    }
}

TEST_CASE("a convolution that the library cannot run is refused unless a plain loop is allowed", "[cuda]") {
  if (without_gpu()) return;
  // Image tensors of 2^32 values, which the library cannot describe. Nothing of them is allocated.
  const OpSpec spec{OpKind::conv_forward, DType::f32,
                    ConvDims{.N = 1 << 20, .C = 1, .in = {64, 64}, .K = 1, .kernel = {3, 3}}};
  const auto strict = open_device("cuda", {});
  CHECK_THROWS_AS(strict->make(spec), EnvironmentError);
  CHECK_THROWS_WITH(strict->make(spec), Catch::Contains("device.allow_fallback = true") &&
                                            Catch::Contains("2^31 elements") && Catch::Contains(spec.text()));
  CHECK_THAT(open_with_fallback()->make(spec)->implementation(), Catch::Contains("ref"));
}

TEST_CASE("a device that only counts takes no memory of the card and builds every op", "[cuda]") {
  if (without_gpu()) return;
  DeviceOptions options;
  options.only_counts = true;
  const auto device = open_device("cuda", options);
  const Memory large = device->allocate(std::size_t{1} << 44, "16 TiB");
  CHECK(device->allocated_bytes() == std::size_t{1} << 44);
  const Graph graph = build_zoo("resnet20", zoo_form("resnet20"));
  const auto real = open_device("cuda", {});
  std::size_t bytes[2] = {};
  for (Device* each : {device.get(), real.get()}) {
    const std::size_t before = each->allocated_bytes();
    Arenas arenas(*each, graph.parameters(), DType::f32);
    const Program program(graph, arenas, {.batch = 4, .dtype = DType::bf16});
    bytes[each == real.get() ? 1 : 0] = each->allocated_bytes() - before;
  }
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("uploads and readings of the clock on a stream beside the host", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  constexpr std::size_t kElems = std::size_t{1} << 20;
  Upload upload(*device, kElems * sizeof(float));
  const Memory input = device->allocate(kElems * sizeof(float), "input"),
               sum = device->allocate(kElems * sizeof(float), "sum");
  const auto timer = device->make_timer();
  std::vector<float> host(kElems);
  timer->mark(0);
  for (int batch = 1; batch <= 20; ++batch) {
    std::fill(host.begin(), host.end(), static_cast<float>(batch));
    upload.begin();
    upload.put(input.data(), host.data(), input.bytes());
    upload.end();
    for (int i = 0; i < 10; ++i) device->vector_ops().add(DType::f32, sum.data(), input.data(), kElems);
  }
  timer->mark(1);
  device->synchronize();
  device->to_host(host.data(), sum.data(), sum.bytes());
  CHECK(host.front() == 2100);
  CHECK(host.back() == 2100);
  CHECK(timer->passed(1));
  CHECK(timer->seconds(0, 1) > 0);
  CHECK(timer->seconds(0, 1) < 10);
}

TEST_CASE("an op gives the same bits at every run", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  const ConvDims conv{.N = 33, .C = 17, .in = {19, 21}, .K = 35, .kernel = {3, 3}, .pad = {1, 1}};
  const RnnDims rnn{.N = 20, .T = 35, .F = 130, .H = 200};
  const OpSpec specs[] = {{OpKind::conv_forward, DType::f32, conv},
                          {OpKind::conv_backward_data, DType::f32, conv},
                          {OpKind::conv_backward_weights, DType::f32, conv},
                          {OpKind::dense_backward_weights, DType::f32, DenseDims{.N = 700, .F = 300, .K = 200}},
                          {OpKind::attention_forward, DType::f32, AttentionDims{.N = 9, .T = 70, .S = 70, .D = 64}},
                          {OpKind::rnn_forward, DType::f32, rnn},
                          {OpKind::rnn_backward, DType::f32, rnn}};
  for (const OpSpec& spec : specs) {
    INFO(spec.text());
    const auto op = device->make(spec);
    Arguments run(*device, spec, *op);
    // A backward op follows its forward twin, which writes `saved` again.
    OpSpec forward = spec;
    forward.kind = spec.kind == OpKind::rnn_backward ? OpKind::rnn_forward : spec.kind;
    const auto twin = device->make(forward);
    const Arguments before(*device, forward, *twin, run.saved.data());
    const std::size_t outputs = signature(spec).size();
    std::vector<std::vector<float>> first;
    for (int repeat = 0; repeat < 5; ++repeat) {
      if (forward.kind != spec.kind) twin->run(before.args);
      op->run(run.args);
      for (std::size_t a = 0; a < outputs; ++a) {
        const std::vector<float> now = run.value(*device, a);
        if (repeat == 0)
          first.push_back(now);
        else
          CHECK(std::memcmp(now.data(), first[a].data(), now.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("events pass in stream order, seen from the host", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  constexpr std::size_t kElems = std::size_t{16} << 20;
  const Memory there = device->allocate(kElems * sizeof(float), "there");
  const Memory host = device->allocate_host(kElems * sizeof(float));
  const auto before = device->record();
  device->vector_ops().fill(DType::f32, there.data(), 1.5, kElems);
  for (int i = 0; i < 20; ++i) device->vector_ops().scale(DType::f32, there.data(), 2.0, kElems);
  device->to_host_async(host.data(), there.data(), there.bytes());
  const auto after = device->record();
  after->wait();
  CHECK(after->ready());
  CHECK(before->ready());
  const auto* values = static_cast<const float*>(host.data());
  CHECK(values[0] == 1.5F * (1 << 20));
  CHECK(values[kElems - 1] == 1.5F * (1 << 20));
}

TEST_CASE("too much memory is a memory error, and the device goes on", "[cuda]") {
  if (without_gpu()) return;
  const auto limited = open_with(0, 1 << 20);
  const Memory half = limited->allocate(1 << 19, "half");
  CHECK_THROWS_AS(limited->allocate((1 << 19) + 1, "more than the other half"), MemoryError);
  CHECK(limited->allocated_bytes() == 1 << 19);
  const auto device = open_device("cuda", {});
  CHECK_THROWS_AS(device->allocate(std::size_t{1} << 46, "64 TiB"), MemoryError);
  const Memory small = device->allocate(1000, "small");
  device->synchronize();
  CHECK(device->allocated_bytes() == 1000);
}

TEST_CASE("a device's index is taken modulo the visible ones", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_with(12 * visible_gpus(), 0);
  CHECK(device->name() == "cuda");
  CHECK_THROWS_AS(device->make_update("no rule", DType::f32), ConfigError);
  CHECK_THROWS_AS(device->make_update("sgd", DType::u8), ConfigError);
}

TEST_CASE("a device beside another is on the same card, on any thread, and both count their memory together",
          "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_with(visible_gpus() - 1, 0);  // if there are several, not the one that threads begin with
  const auto beside = device->beside();
  CHECK(beside->card() == device->card());
  const Memory here = device->allocate(1000, "here");
  Memory there;
  std::vector<std::string> failures;
  std::thread([&] {
    there = beside->allocate(3000, "there");
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const std::string& failure : check_vector_ops(*beside, dtype, 1e-5)) failures.push_back(failure);
      for (const std::string& failure : check_updates(*beside, dtype, 1e-5)) failures.push_back(failure);
    }
  }).join();
  for (const std::string& failure : failures) FAIL_CHECK(failure);
  CHECK(device->allocated_bytes() == 4000);
  CHECK(beside->allocated_bytes() == 4000);
  const auto limited = open_with(0, 5000);
  const Memory most = limited->beside()->allocate(4000, "most");
  CHECK_THROWS_AS(limited->allocate(1001, "more"), MemoryError);
}

TEST_CASE("chunks of sequences of unlike lengths are refused", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  CHECK_THROWS_AS(device->make(chunk_specs(DType::f32).front()), ConfigError);
}
