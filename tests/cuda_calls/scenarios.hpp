// SPDX-License-Identifier: Apache-2.0
// The runs into which errors are injected: together they make every call of cuda/ from every place that makes it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/replicas.hpp"

namespace echelon::test {

struct Scenario {
  std::string name;
  std::function<void()> run;
};

inline Scenario training_of(const std::string& name, const Graph& graph, const Training::Options& options,
                            int steps = 2) {
  return {name, [graph, options, steps] {
            Training training(graph, options);
            for (int step = 0; step < steps; ++step) training.step();
            training.device().synchronize();
          }};
}

// NCCL on one rank, since its errors need no second one.
inline void sum_alone() {
  const auto device = open_gpu();
  const Memory values = device->allocate(4096, "values");
  const auto sums = device->make_allreduce({.rank = 0, .ranks = 1, .slots = 2, .broadcast = [](void*, std::size_t) {}});
  for (int step = 0; step < 2; ++step) {
    sums->sum(0, DType::f32, values.data(), 1024);
    sums->sum(1, DType::f64, values.data(), 512);
    sums->join(0);
    sums->join(1);
    (void)sums->done(1);
  }
  device->synchronize();
}

inline void copy_about() {
  const auto device = open_gpu();
  (void)device->describe();
  (void)device->card();
  const auto beside = device->beside();
  const Memory here = device->allocate(1000, "here"), host = device->allocate_host(1000);
  const Memory imported = device->import_memory(device->export_memory(here));
  if (imported.data()) device->copy(here.data(), imported.data(), 1000);
  device->to_device_async(here.data(), host.data(), 1000);
  device->vector_ops().copy(DType::f32, here.data(), here.bytes_at(400), 100);
  (void)device->vector_ops().sum_squares(DType::f32, here.data(), 250);
  const auto event = device->record();
  (void)event->ready();
  event->wait();
  const auto timer = device->make_timer();
  timer->mark(0);
  timer->mark(1);
  const auto queue = device->make_copy_queue(2);
  for (const std::size_t slot : {0, 1, 0}) {
    queue->begin(slot);
    queue->copy(here.data(), host.data(), 1000);
    queue->end(slot);
    queue->release(slot);
  }
  device->to_host_async(host.data(), here.data(), 1000);
  device->synchronize();
  timer->wait(1);
  if (timer->passed(1)) (void)timer->seconds(0, 1);
  (void)device->card_bytes();
}

inline void encode_all() {
  const auto device = open_gpu();
  for (const char* name : {"fp16", "int8", "onebit", "topk", "threshold"}) {
    const DeviceCodecSpec spec{
        .name = name,
        .ranks = 2,
        .chosen = 10,
        .parts = {
            {.begin = 0, .elems = 100, .at = 64, .bytes = 1200, .blocks = {{.begin = 0, .elems = 100, .at = 0}}}}};
    const Memory host = device->allocate_host(2000), values = device->allocate(400, "values");
    const Memory residual = device->allocate(400, "residual");
    const auto codec = device->make_codec(spec);
    auto* floats = static_cast<float*>(values.data());
    codec->encode({.values = floats, .residual = static_cast<float*>(residual.data())}, host.bytes_at(0));
    codec->decode(0, host.bytes_at(64), 1200, floats);
    device->synchronize();
  }
}

inline std::vector<Scenario> scenarios() {
  std::vector<Scenario> all{{"sums by NCCL", sum_alone}, {"copies", copy_about}, {"codecs", encode_all}};
  all.push_back(training_of("cnn_32_64", small_cnn(), {}));
  all.push_back(training_of("batch norm in bf16", small_batch_norm_net(), {.activations = DType::bf16}));
  all.push_back(training_of("dropout in f16", small_dropout_net(), {.activations = DType::f16}));
  all.push_back(training_of("graphs", small_cnn(), {.activations = DType::bf16, .replay = true}, 4));
  for (const NamedGraph& model : small_sequence_models()) all.push_back(training_of(model.name, model.graph, {}));
  return all;
}

}  // namespace echelon::test
