// SPDX-License-Identifier: Apache-2.0
// bf16 and f16 on CPUs: by the processor's instructions where it has them, and in f32 on rounded values everywhere.
//
// Tolerance: as on GPUs, of an output's largest value 2e-2 in bf16, for rounding to 8 bits, and 2e-3 in f16. Gradients
// of parameters stay f32, and where they are sums of products of halves, which f32 holds exactly, they are right to
// 1e-5.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "base/processor.hpp"
#include "device/onednn/onednn.hpp"
#include "model/build.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/fallback.hpp"
#include "tests/support/mixed_precision.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout_device.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/split_check.hpp"
#include "tests/support/split_models.hpp"
#include "tests/support/stored.hpp"
#include "tests/support/wishing_device.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

DeviceMaker halves(bool emulated, int threads = 1) {
  return [=] { return make_onednn_device({.threads = threads, .emulate_halves = emulated}); };
}

bool without_instructions(bool emulated, DType half = DType::bf16) {
  return !emulated && skip_without(multiplies_halves(half), Lacks::processor,
                                   half == DType::bf16 ? half_instructions_text() : "without AMX_FP16 or oneDNN 3");
}

double tolerance_of(DType half) { return half == DType::bf16 ? 2e-2 : 2e-3; }

void check(Device& device, const OpSpec& spec, double tolerance) {
  if (!device.has(spec.kind, spec.dtype)) return;
  const OpCheck result = check_op(device, spec, tolerance);
  INFO(result.message);
  CHECK(result.ok);
}

bool is_weight(const ArgInfo& arg) { return arg.parameter && arg.name.starts_with('w'); }

// The values that are rounded to bf16 beforehand: nothing, the weights, or all factors of products.
enum class Round : std::uint8_t { none, weights, factors };

bool is_rounded(const ArgInfo& arg, Round round) {
  return round == Round::factors ? arg.name != "b" : round == Round::weights && is_weight(arg);
}

// Returns the outputs of one run; the arguments depend on their names alone.
std::vector<std::byte> outputs_of(Device& device, const OpSpec& spec, Round round) {
  const std::unique_ptr<Op> op = device.make(spec);
  const std::vector<ArgInfo> infos = signature(spec);
  std::vector<Memory> tensors;
  std::vector<void*> addresses;
  for (const ArgInfo& arg : infos) {
    auto values = random_values(static_cast<std::size_t>(arg.shape.elems()), std::string(arg.name));
    if (is_rounded(arg, round)) values = rounded(values, DType::bf16);
    const Bytes bytes = to_stored(values, arg.dtype, arg.shape, Layout::plain);
    tensors.push_back(device.allocate(bytes.size(), arg.name));
    device.to_device(tensors.back().data(), bytes.data(), bytes.size());
    addresses.push_back(tensors.back().data());
  }
  const Memory saved = device.allocate(op->saved_bytes(), "saved"), scratch = device.allocate(op->scratch_bytes(), "s");
  OpArgs args;
  args.tensors = addresses.data();
  args.saved = saved.data();
  args.scratch = scratch.data();
  args.parameter_version = 1;
  op->run(args);
  std::vector<std::byte> outputs;
  for (std::size_t a = 0; a < infos.size(); ++a)
    if (infos[a].role == ArgRole::output)
      outputs.insert(outputs.end(), tensors[a].bytes_at(0), tensors[a].bytes_at(tensors[a].bytes()));
  return outputs;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Whether an op works on widened copies of its arguments; none if that depends on the processor or on extents.
std::optional<bool> widens(const OpSpec& spec, bool emulated) {
  if (std::holds_alternative<ConvDims>(spec.dims) && spec.dtype == DType::f16 && !emulated) return std::nullopt;
  if (std::holds_alternative<ConvDims>(spec.dims) || std::holds_alternative<DenseDims>(spec.dims)) return emulated;
  if (std::holds_alternative<AttentionDims>(spec.dims)) return true;
  const bool depends = std::holds_alternative<RnnDims>(spec.dims) || std::holds_alternative<PoolDims>(spec.dims) ||
                       std::holds_alternative<ReorderDims>(spec.dims) ||
                       (std::holds_alternative<ActivationDims>(spec.dims) && !multiplies_bf16());
  return depends ? std::nullopt : std::optional(spec.dtype == DType::f16);
}

ReplicaRun run_of(Graph graph) {
  ReplicaRun run{.graph = std::move(graph), .shares = {4, 4}};
  run.device = "onednn_halves";
  run.dtype = DType::f32;
  run.activations = DType::bf16;
  return run;
}

}  // namespace

TEST_CASE("onednn keeps the contract of devices in halves", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  const DType half = GENERATE(DType::bf16, DType::f16);
  if (without_instructions(emulated, half)) return;
  const int threads = GENERATE(1, 2);
  const auto device = halves(emulated, threads)();
  CAPTURE(device->describe());
  for (const std::string& failure : check_device(*device, half, tolerance_of(half))) FAIL_CHECK(failure);
  for (const OpSpec& spec : chunk_specs(half)) check(*device, spec, tolerance_of(half));
}

TEST_CASE("onednn in halves: layouts that this machine would not choose", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  const DType half = GENERATE(DType::bf16, DType::f16);
  if (without_instructions(emulated, half)) return;
  const auto device = halves(emulated)();
  for (Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    WishingDevice wishing(*device, layout);
    for (const OpSpec& spec : contract_specs(half)) check(wishing, spec, tolerance_of(half));
  }
}

TEST_CASE("onednn in halves sums gradients of weights in f32, and of biases", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  const DType half = GENERATE(DType::bf16, DType::f16);
  if (without_instructions(emulated, half)) return;
  const auto device = halves(emulated)();
  for (const OpSpec& spec : contract_specs(half))
    if (spec.kind == OpKind::conv_backward_weights || spec.kind == OpKind::dense_backward_weights)
      check(*device, spec, 1e-5);
}

TEST_CASE("onednn in bf16 multiplies by weights rounded to bf16", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  if (without_instructions(emulated)) return;
  const auto device = halves(emulated)();
  const ConvDims conv{2, 16, {9, 9}, 16, {3, 3}, {}, {1, 1}};
  const RnnDims rnn{.N = 3, .T = 4, .F = 5, .H = 40, .cell = Cell::tanh};
  for (const OpSpec& spec :
       std::initializer_list<OpSpec>{{OpKind::conv_forward, DType::bf16, conv},
                                     {OpKind::conv_backward_data, DType::bf16, conv},
                                     {OpKind::dense_forward, DType::bf16, DenseDims{5, 70, 30}},
                                     {OpKind::dense_backward_data, DType::bf16, DenseDims{5, 70, 30}},
                                     {OpKind::rnn_forward, DType::bf16, rnn},
                                     {OpKind::rnn_backward, DType::bf16, rnn}}) {
    INFO(spec.text());
    CHECK(outputs_of(*device, spec, Round::weights) == outputs_of(*device, spec, Round::none));
  }
}

TEST_CASE("onednn in f32 with products in bf16: their factors are rounded, and nothing else",
          "[device][onednn][halves]") {
  if (without_instructions(false)) return;
  const int threads = GENERATE(1, 2);
  const auto device = make_onednn_device({.threads = threads, .tf32 = true});
  const auto plain = make_onednn_device({.threads = threads});
  int rounded = 0;
  for (const OpSpec& spec : contract_specs(DType::f32)) {
    INFO(spec.text());
    if (std::holds_alternative<DenseDims>(spec.dims)) {
      ++rounded;
      // Products of rounded factors are exact in f32, so both devices sum the same terms.
      const std::vector<float> by_halves = floats_of(outputs_of(*device, spec, Round::factors));
      const std::vector<float> by_single = floats_of(outputs_of(*plain, spec, Round::factors));
      REQUIRE(by_halves.size() == by_single.size());
      for (std::size_t i = 0; i < by_halves.size(); ++i) CHECK(by_halves[i] == Approx(by_single[i]).margin(2e-5));
      // A gradient of the bias adds values that are not rounded.
      if (spec.kind != OpKind::dense_backward_weights)
        CHECK(floats_of(outputs_of(*device, spec, Round::factors)) ==
              floats_of(outputs_of(*device, spec, Round::none)));
    } else if (const auto* rnn = std::get_if<RnnDims>(&spec.dims)) {
      if (rnn->cell == Cell::relu) continue;  // at a kink rounding decides the gradient
      ++rounded;
      const OpCheck result = check_op(*device, spec, 5e-2, DType::bf16);
      INFO(result.message);
      CHECK(result.ok);
      CHECK_FALSE(check_op(*device, spec, 1e-6).ok);
    }
  }
  CHECK(rounded > 20);
}

TEST_CASE("onednn has in halves what computes in halves, and says what a processor lacks", "[device][onednn][halves]") {
  const auto device = halves(true)(), single = make_onednn_device({});
  CHECK(multiplies_halves(DType::bf16) == multiplies_bf16());
  for (const DType half : {DType::bf16, DType::f16}) {
    CHECK(device->supports(half));
    CHECK(single->supports(half) == multiplies_halves(half));
    for (const OpKind kind : all_op_kinds()) {
      INFO(name_of(kind));
      CHECK(device->has(kind, DType::f32));
      CHECK(device->has(kind, half) == computes_in_halves(kind));
    }
    if (multiplies_halves(half)) continue;
    CHECK_THROWS_AS(single->make({OpKind::add, half, ElementwiseDims{Shape{4}}}), EnvironmentError);
    CHECK_THROWS_WITH(single->make({OpKind::add, half, ElementwiseDims{Shape{4}}}),
                      Catch::Contains(half == DType::bf16 ? "AVX512_BF16" : "AMX_FP16 and oneDNN 3") &&
                          Catch::Contains("device.emulate_halves"));
  }
}

TEST_CASE("no op of onednn in halves falls back to an unoptimised body", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  const DType half = GENERATE(DType::bf16, DType::f16);
  if (without_instructions(emulated, half)) return;
  const auto device = halves(emulated)();
  for (OpSpec spec : contract_specs(half)) {
    if (!device->has(spec.kind, half)) continue;
    for (int round = 0; round < 2; ++round) {
      const std::string implementation = device->make(spec)->implementation();
      CAPTURE(spec.text(), implementation);
      CHECK_FALSE(falls_back(implementation));
      if (const auto expected = widens(spec, emulated))
        CHECK((implementation.find("widened") != std::string::npos) == *expected);
      spec.layouts = device->layouts(spec).layouts;
    }
  }
}

TEST_CASE("mixed precision on onednn: gradients, sequences, training", "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  const Half half = GENERATE(kBf16, kF16);
  if (without_instructions(emulated, half.dtype)) return;
  check_mixed_images(halves(emulated), half);
  check_mixed_sequences(halves(emulated), half);
  check_mixed_states(halves(emulated), half);
  check_mixed_training(halves(emulated), half,
                       half.dtype == DType::f16 ? LossScaling{.dynamic = true, .start = 65536} : LossScaling{});
}

TEST_CASE("carried states in halves on a device that lays tensors out at random", "[halves]") {
  for (const std::uint64_t seed : {1, 2})
    for (const Half half : {kF16, kBf16}) check_mixed_states([=] { return make_random_layout_device(seed); }, half);
}

TEST_CASE("mixed precision on onednn: convolutions keep their layouts, with few reorders between them",
          "[device][onednn][halves]") {
  const bool emulated = GENERATE(true, false);
  if (without_instructions(emulated)) return;
  ModelConfig config;
  config.zoo = "unet", config.widths = {32, 64};
  const SampleForm voxels{.shape = {1, 8, 8, 8}, .label = {8, 8, 8}, .classes = 3, .dense = true};
  for (const auto& [name, graph] : {NamedGraph{"resnet20", build_zoo("resnet20", labelled({3, 32, 32}, 10))},
                                    NamedGraph{"unet of volumes", build_model(config, voxels)}}) {
    Trainer mixed(graph, 4, {.dtype = DType::f32, .activations = DType::bf16}, halves(emulated)());
    int convolutions = 0, reorders = 0;
    for (const OpReport& op : mixed.program().ops()) {
      reorders += op.spec.kind == OpKind::reorder ? 1 : 0;
      if (!std::holds_alternative<ConvDims>(op.spec.dims)) continue;
      ++convolutions;
      CHECK(is_half(op.spec.dtype));
    }
    std::printf("%s in bf16 on onednn: %d convolutions, %d reorders\n", name, convolutions, reorders);
    CHECK(reorders <= 8);
  }
}

TEST_CASE("mixed precision on onednn: k replicas have the weights of one", "[equality][onednn][halves]") {
  for (const NamedGraph& model : {NamedGraph{"cnn_32_64", small_cnn()}, NamedGraph{"dropout", small_dropout_net()}})
    DYNAMIC_SECTION(model.name) {
      const ReplicaRun run = run_of(model.graph);
      const ReplicaResult split = train_replicas(run), whole = train_replicas(on_one_replica(run, true));
      check_one_model(split);
      CHECK(tensor_distance(run.graph.parameters(), split.gradients, whole.gradients) <= 1e-4);
      CHECK(tensor_distance(run.graph.parameters(), split.weights, whole.weights) <= 2e-2);
    }
}

TEST_CASE("mixed precision on onednn: resumed runs end with the same bits, coded ones are one model",
          "[onednn][halves]") {
  ReplicaRun run = run_of(small_cnn());
  const ReplicaResult straight = train_replicas(run);
  run.resume_at = 7;
  CHECK(train_replicas(run).weights == straight.weights);
  run.resume_at = -1;
  for (const char* codec : {"bf16", "fp16", "int8", "topk", "lossless"}) {
    INFO(codec);
    run.codec = codec;
    const ReplicaResult coded = train_replicas(run);
    check_one_model(coded);
    CHECK((coded.weights == straight.weights) == (run.codec == "lossless"));
  }
}

TEST_CASE("mixed precision on onednn: parts of a model have the gradients of the whole", "[split][onednn][halves]") {
  const auto check_parts = [](const Graph& graph, const ParallelConfig& parallel, double within = 2e-2) {
    SplitRun run{.replicas = run_of(graph), .parallel = parallel};
    run.replicas.steps = 3;
    const SplitResult split = train_split(run);
    const ReplicaResult whole = train_replicas(on_one_replica(run.replicas, true));
    CHECK(tensor_distance(graph.parameters(), split.gradients, whole.gradients) <= within);
    CHECK(split.loss == Approx(whole.loss).epsilon(2e-2));
  };
  ParallelConfig pipeline, tensor, space;
  pipeline.pipeline = 2, tensor.tensor = 2, space.space = 2;
  for (const NamedGraph& model : small_sequence_models()) DYNAMIC_SECTION(model.name) {
      if (std::string(model.name) == "charlstm" || std::string(model.name) == "wordlstm") {
        check_parts(model.graph, pipeline);
        check_parts(model.graph, tensor);
      }
    }
  DYNAMIC_SECTION("carried states") { check_parts(small_carrying_stack(), tensor); }
  DYNAMIC_SECTION("images, pipeline") { check_parts(small_cnn(), pipeline); }
  // Parts are rounded before they are summed, or are summed elsewhere: where that moves a maximum, gradients differ
  // more.
  DYNAMIC_SECTION("images, tensor") { check_parts(small_cnn(), tensor, 0.2); }
  DYNAMIC_SECTION("images, space") { check_parts(small_tall_net(), space, 0.2); }
}

TEST_CASE("onednn in f32 with bf16 products: convolutions of operands that bf16 holds are right to f32, as all else",
          "[device][onednn][halves]") {
  if (without_instructions(false)) return;
  const auto device = make_onednn_device({.tf32 = true});
  CHECK_THAT(device->describe(), Catch::Contains("products of f32 in bf16"));
  for (const OpSpec& spec : contract_specs(DType::f32)) {
    const bool convolves = std::holds_alternative<ConvDims>(spec.dims);
    if (!convolves && !std::holds_alternative<NormDims>(spec.dims)) continue;
    const OpCheck result = check_op(*device, spec, 1e-5, convolves ? DType::bf16 : DType::f32);
    INFO(result.message);
    CHECK(result.ok);
  }
}
