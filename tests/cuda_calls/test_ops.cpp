// SPDX-License-Identifier: Apache-2.0
// The contract's rows of every op, and the device's other functions, over the stand-in. Kernels compute nothing here;
// the tests check that the libraries' rules are kept.
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "comm/codec/codec.hpp"
#include "device/throttling.hpp"
#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/device_contract.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

OpSpec with_inputs_in(const OpSpec& spec, Layout layout) {
  OpSpec asked = spec;
  const std::vector<ArgInfo> args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a)
    asked.layouts[a] = args[a].movable && args[a].role == ArgRole::input ? layout : Layout::plain;
  return asked;
}

// The layouts that the device asks for if the inputs are plain, and if they are channels last.
std::vector<OpSpec> layouts_of(const Device& device, const OpSpec& spec) {
  std::vector<OpSpec> all;
  for (const Layout layout : {Layout::plain, Layout::channels_last}) {
    OpSpec variant = spec;
    variant.layouts = device.layouts(with_inputs_in(spec, layout)).layouts;
    if (spec.kind == OpKind::reorder) variant.layouts = {layout, Layout::plain};
    if (all.empty() || !(all[0] == variant)) all.push_back(variant);
  }
  return all;
}

unsigned all_that_add(const OpSpec& spec) {
  unsigned mask = 0;
  const std::vector<ArgInfo> args = signature(spec);
  for (std::size_t a = 0; a < args.size(); ++a)
    if (args[a].adds) mask |= 1U << a;
  return mask;
}

void run_contract(DType dtype, bool late) {
  ledger().begin({.late = late});
  int rows = 0;
  {
    const auto device = open_gpu({.index = kGpu, .allow_fallback = true});
    for (const OpSpec& spec : contract_specs(dtype)) {
      if (is_half(dtype) && !device->has(spec.kind, dtype)) continue;
      for (const OpSpec& variant : layouts_of(*device, spec)) {
        ++rows;
        for (const bool unaligned : {false, true}) {
          OpRun run(*device, variant, unaligned ? 2 : 1, unaligned);
          run.run(0);
          run.run(all_that_add(variant));
          device->synchronize();
        }
        if (const std::string text = complaints();
            text.find("not given back") != 0 && !ledger().broken_rules().empty()) {
          FAIL_CHECK(variant.text() << ": " << ledger().broken_rules().front());
          ledger().begin({.late = late});
        }
      }
    }
    for (const OpSpec& spec : chunk_specs(dtype)) {
      if (is_half(dtype)) break;
      CHECK_THROWS_AS(device->make(spec), ConfigError);
    }
  }
  CHECK(complaints() == "");
  CHECK(rows > 100);
}

}  // namespace

TEST_CASE("every row of the contract keeps the libraries' rules in f32", "[cuda_calls][ops]") {
  run_contract(DType::f32, false);
}
TEST_CASE("every row of the contract keeps the libraries' rules in f64", "[cuda_calls][ops]") {
  run_contract(DType::f64, true);
}
TEST_CASE("every row of the contract keeps the libraries' rules in halves", "[cuda_calls][ops]") {
  run_contract(DType::f16, true);
  run_contract(DType::bf16, false);
}

TEST_CASE("products and convolutions may round to TF32 where that is asked for", "[cuda_calls][ops]") {
  ledger().begin({});
  {
    DeviceOptions options;
    options.index = kGpu;
    options.tf32 = true;
    options.allow_fallback = true;
    const auto device = open_gpu(options);
    for (const OpSpec& spec : contract_specs(DType::f32))
      if (std::holds_alternative<ConvDims>(spec.dims) || std::holds_alternative<DenseDims>(spec.dims))
        OpRun(*device, spec, 1, false).run(0);
    device->synchronize();
  }
  CHECK(complaints() == "");
}

TEST_CASE("each product of attention is one batch over samples and heads", "[cuda_calls][ops]") {
  const auto products = [](DType dtype, const AttentionDims& d, OpKind kind) {
    ledger().begin({});
    {
      const auto device = open_gpu();
      OpRun run(*device, {kind, dtype, d, {}}, 1, false);
      run.run(0);
      device->synchronize();
    }
    CHECK(complaints() == "");
    auto counts = ledger().counts();
    return std::pair{counts["cublasGemmBatchedEx_64"], counts["cublasGemmStridedBatchedEx_64"]};
  };
  using Counts = std::pair<std::int64_t, std::int64_t>;
  const AttentionDims even{.N = 2, .T = 8, .S = 16, .D = 40, .heads = 5};
  const AttentionDims odd{.N = 2, .T = 3, .S = 5, .D = 15, .heads = 5};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    INFO(name_of(dtype));
    CHECK(products(dtype, even, OpKind::attention_forward) == Counts{2, 0});
    CHECK(products(dtype, even, OpKind::attention_backward) == Counts{2 + 4, 0});  // after forward, which saves data
    // Matrices of halves that do not begin at 16 bytes: a batch over samples for each head.
    CHECK(products(dtype, odd, OpKind::attention_forward) == (is_half(dtype) ? Counts{0, 2 * 5} : Counts{2, 0}));
  }
  CHECK(products(DType::f32, {.N = 4, .T = 3, .S = 5, .D = 8, .heads = 1}, OpKind::attention_forward) == Counts{0, 2});
}

TEST_CASE("memory, copies, events and vector operations keep the runtime's rules", "[cuda_calls]") {
  for (const bool late : {false, true}) {
    ledger().begin({.late = late});
    {
      const auto device = open_gpu();
      CHECK(device->describe().find("sm_90") != std::string::npos);
      CHECK(!device->card().empty());
      Memory here = device->allocate(1000, "here"), there = device->allocate(0, "nothing");
      const Memory host = device->allocate_host(1000);
      device->to_device_async(here.data(), host.data(), 1000);
      device->to_host_async(host.data(), here.data(), 1000);
      device->zero(here.data(), 1000);
      const auto event = device->record();
      int asked = 0;
      while (!event->ready() && asked < 1000) ++asked;
      CHECK(event->ready());
      CHECK((asked > 0) == late);
      device->vector_ops().fill(DType::f64, here.data(), 1, 125);
      device->vector_ops().copy(DType::f32, here.data(), here.bytes_at(400), 100);
      device->vector_ops().add(DType::f32, here.data(), here.bytes_at(400), 100);
      device->vector_ops().axpy(DType::f32, here.data(), 2, here.bytes_at(400), 100);
      device->vector_ops().scale(DType::f32, here.data(), 2, 250);
      (void)device->vector_ops().sum_squares(DType::f32, here.data(), 250);
      (void)device->vector_ops().max_abs(DType::f32, here.data(), 250);
      CHECK(device->vector_ops().count_not_finite(DType::f32, here.data(), 250) == 0);
      device->record()->wait();
      const Memory imported = device->import_memory(device->export_memory(here));
      REQUIRE(imported.data() != nullptr);
      device->copy(here.data(), imported.data(), 1000);
      device->synchronize();
    }
    CHECK(complaints() == "");
  }
}

TEST_CASE("why a card is throttled comes from NVIDIA's management library, of the card in use", "[cuda_calls]") {
  ledger().begin({});
  {
    const auto first = open_gpu({.index = 0}), second = open_gpu();
    const auto with = [&](const char* reasons) {
      setenv("ECHELON_CUDA_CALLS_CLOCKS", reasons, 1);
      return second->throttled();
    };
    CHECK(with("0") == 0);
    CHECK(with("0x5") == 0);  // idle, or at the limit of power that software keeps
    CHECK(with("0x20") == kTooHot);
    CHECK(with("0x40") == kTooHot);
    CHECK(with("0x80") == kPowerBrake);
    CHECK(with("0x68") == (kTooHot | kPowerBrake));
    CHECK(first->throttled() == 0);
    unsetenv("ECHELON_CUDA_CALLS_CLOCKS");
  }
  CHECK(complaints() == "");
}

TEST_CASE("a device beside, on another thread, uses nothing of the first one", "[cuda_calls]") {
  ledger().begin({.late = true});
  {
    const auto device = open_gpu();
    const auto beside = device->beside();
    Memory there;
    std::thread([&] {
      there = beside->allocate(3000, "there");
      beside->vector_ops().fill(DType::f32, there.data(), 1, 750);
      (void)beside->vector_ops().sum_squares(DType::f32, there.data(), 750);
    }).join();
    CHECK(device->allocated_bytes() == 3000);
  }
  CHECK(complaints() == "");
}

TEST_CASE("codecs on the device keep the runtime's rules", "[cuda_calls]") {
  for (const bool late : {false, true}) {
    ledger().begin({.late = late});
    {
      const auto device = open_gpu();
      for (const std::string& name : codec_names()) {
        if (!codec_info(name).lossy) continue;
        for (const std::int64_t n : {std::int64_t{1}, std::int64_t{2050}}) {
          const CodecOptions options{.ranks = 3, .density = 0.3, .index_coding = "raw"};
          const auto on_host = make_codec(name, options);
          const std::size_t most = on_host->most_bytes(n);
          DeviceCodecSpec spec{.name = name, .ranks = 3, .chosen = on_host->chosen(n), .parts = {}};
          spec.parts.push_back({.begin = 0, .elems = n, .at = 64, .bytes = most, .blocks = on_host->blocks(n)});
          const Memory host = device->allocate_host(64 + most);
          const Memory values = device->allocate(static_cast<std::size_t>(n) * 4, "values");
          const Memory residual = device->allocate(static_cast<std::size_t>(n) * 4, "residual");
          const auto codec = device->make_codec(spec);
          REQUIRE(codec != nullptr);
          auto* floats = static_cast<float*>(values.data());
          codec->encode({.values = floats, .residual = static_cast<float*>(residual.data()), .key = 7},
                        host.bytes_at(0));
          device->synchronize();
          codec->decode(0, host.bytes_at(64), most, floats);
          codec->decode_add(0, host.bytes_at(64), most, floats);
          device->synchronize();
        }
      }
    }
    CHECK(complaints() == "");
  }
}
