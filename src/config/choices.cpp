// SPDX-License-Identifier: Apache-2.0
#include "config/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/devices.hpp"
#include "config/traits/rules.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline config {
namespace {

using P = Property;
using Chosen = std::function<bool(const Config&)>;

Choice word(const std::string& path, std::string_view name, bool neutral, Properties is, Chosen chosen) {
  return {.path = path,
          .value = fmt::format("\"{}\"", name),
          .name = std::string(name),
          .worded = true,
          .neutral = neutral,
          .is = is,
          .chosen = std::move(chosen)};
}

// Describes a word of a key whose value is text.
template <class Part>
Choice text_word(const std::string& path, std::string_view name, Properties is, Part Config::*part,
                 std::string Part::*field) {
  return word(path, name, Part().*field == name, is,
              [part, field, name = std::string(name)](const Config& config) { return config.*part.*field == name; });
}

// Describes a key that is off by default: "optimizer.clip_norm" is shown as "clip_norm".
Choice key(const std::string& path, const std::string& value, Properties is, Chosen chosen) {
  return {.path = path, .value = value, .name = path.substr(path.find('.') + 1), .is = is, .chosen = std::move(chosen)};
}

Properties properties_of(const StrategyTraits& strategy) {
  Properties is;
  is.add(P::own_exchange, !strategy.all_reduces()).add(P::own_overlap, !strategy.reads.contains("overlap"));
  is.add(P::own_reduction, !strategy.reads.contains("reduction"));
  is.add(P::parts_of_updates, !strategy.whole_parameters);
  is.add(P::unmeasured_parts, !strategy.whole_parameters && !strategy.measures_parts);
  is.add(P::plain_messages, !strategy.carries_codes);
  is.add(P::local_steps, strategy.local_steps).add(P::own_pace, strategy.own_pace);
  is.add(P::skips_steps, strategy.skips_steps);
  is.add(P::needs_all_workers, !strategy.goes_on_without);
  return is;
}

// Returns the properties common to all strategies that read the table [exchange.<strategy>].
Properties common_of_readers(std::string_view strategy) {
  Properties common = properties_of(strategy_traits(strategy));
  for (const StrategyTraits& reader : kStrategies)
    if (reader.reads_table(strategy)) common = common & properties_of(reader);
  return common;
}

// Adds the keys of [exchange.<strategy>] that exclude other choices.
template <class Keys>
struct KeyChoices {
  const char* strategy;
  Keys ExchangeConfig::*keys;
  ChoiceAxis& axis;

  void choice(const char* name, const char* value, Properties is, bool (*chosen)(const Keys&)) {
    axis.choices.push_back(key(fmt::format("exchange.{}.{}", strategy, name), value, common_of_readers(strategy) | is,
                               [=, at = keys](const Config& config) { return chosen(config.exchange.*at); }));
  }
};

template <class Keys>
void add_choices(KeyChoices<Keys> table) {
  if constexpr (requires { Keys::choices(table); }) Keys::choices(table);
}

ChoiceAxis strategies() {
  ChoiceAxis axis{.name = "strategy", .choices = {}};
  for (const StrategyTraits& strategy : kStrategies)
    axis.choices.push_back(text_word("exchange.strategy", strategy.name, properties_of(strategy), &Config::exchange,
                                     &ExchangeConfig::strategy));
#define X(name, Keys, ...) add_choices<Keys>({#name, &ExchangeConfig::name, axis});
  ECHELON_STRATEGIES(X)
#undef X
  return axis;
}

ChoiceAxis algorithms() {
  ChoiceAxis axis{.name = "algorithm", .choices = {}};
  for (const AlgorithmTraits& algorithm : kAlgorithms) {
    Properties is;
    is.add(P::all_reduce, algorithm.name != ExchangeConfig().algorithm).add(P::library_sums, algorithm.library);
    is.add(P::sums_between_gpus, algorithm.on_devices).add(P::one_binary_tree, algorithm.one_tree);
    is.add(P::measures_plain, algorithm.measured).add(P::sums_in_memory, algorithm.in_memory);
    axis.choices.push_back(
        text_word("exchange.algorithm", algorithm.name, is, &Config::exchange, &ExchangeConfig::algorithm));
  }
  return axis;
}

ChoiceAxis reductions() {
  const auto reduction = [](std::string_view name, Reduction value, Properties is) {
    return word("exchange.reduction", name, value == ExchangeConfig().reduction, is,
                [value](const Config& config) { return config.exchange.reduction == value; });
  };
  return {
      .name = "reduction",
      .choices = {reduction("sum", Reduction::sum, {}), reduction("adasum", Reduction::adasum, {P::combines_pairs})}};
}

ChoiceAxis codecs() {
  ChoiceAxis axis{.name = "codec", .choices = {}};
  const auto add = [&](const CodecTraits& codec) {
    Properties is;
    is.add(P::coded, codec.name != kNoCodec.name).add(P::lossy_code, codec.lossy);
    is.add(P::own_route, codec.route != CodecRoute::any);
    axis.choices.push_back(text_word("exchange.codec", codec.name, is, &Config::exchange, &ExchangeConfig::codec));
  };
  add(kNoCodec);
  for (const CodecTraits& codec : kCodecs) add(codec);
  return axis;
}

ChoiceAxis overlaps() {
  const auto overlap = [](std::string_view name, Overlap value, Properties is) {
    const bool neutral = value == ExchangeConfig().overlap;
    return word("exchange.overlap", name, neutral, is.add(P::overlaps, !neutral),
                [value](const Config& config) { return config.exchange.overlap == value; });
  };
  return {.name = "overlap",
          .choices = {overlap("none", Overlap::none, {}), overlap("buckets", Overlap::buckets, {}),
                      overlap("layers", Overlap::layers, {P::updates_by_layer}),
                      key("exchange.priority", "true", {P::orders_buckets},
                          [](const Config& config) { return config.exchange.priority; })}};
}

ChoiceAxis rules() {
  ChoiceAxis axis{.name = "optimiser", .choices = {}};
  for (const RuleTraits& rule : kRules) {
    Properties is;
    const bool norms = rule.trust != TrustRatio::none;
    is.add(P::looks_at_whole, norms).add(P::norms_of_tables, norms);
    axis.choices.push_back(text_word("optimizer.rule", rule.name, is, &Config::optimiser, &OptimiserConfig::rule));
  }
  return axis;
}

ChoiceAxis updates() {
  return {.name = "optimiser",
          .choices = {key("optimizer.clip_norm", "1", {P::needs_all_gradients, P::looks_at_whole},
                          [](const Config& config) { return config.optimiser.clip_norm > 0; }),
                      key("optimizer.lazy", "true", {P::row_by_row},
                          [](const Config& config) { return config.optimiser.lazy; }),
                      key("device.loss_scale", "64", {P::scaled_loss, P::needs_all_gradients, P::looks_at_whole},
                          [](const Config& config) { return config.device.loss_scale > 0; })}};
}

ChoiceAxis dtypes() {
  const auto dtype = [](DType value, Properties is) {
    return word("device.dtype", name_of(value), value == DeviceConfig().dtype, is,
                [value](const Config& config) { return config.device.dtype == value; });
  };
  return {.name = "device",
          .choices = {dtype(DType::f32, {}), dtype(DType::f64, {P::double_values}),
                      dtype(DType::f16, {P::f16_values, P::scaled_loss, P::needs_all_gradients, P::looks_at_whole}),
                      dtype(DType::bf16, {P::bf16_values})}};
}

ChoiceAxis devices() {
  ChoiceAxis axis{.name = "device", .choices = {}};
  for (const DeviceTraits& device : kDevices) {
    Properties is;
    is.add(P::computes_double, device.doubles).add(P::computes_f16, device.f16).add(P::computes_bf16, device.bf16);
    is.add(P::no_gpu, !device.may_be_gpu).add(P::whichever, device.name == DeviceConfig().kind);
    is.add(P::one_device, device.name != DeviceConfig().kind);
    axis.choices.push_back(text_word("device.kind", device.name, is, &Config::device, &DeviceConfig::kind));
  }
  axis.choices.push_back(key("device.kinds", "[\"cuda\", \"onednn\"]", {P::unlike_devices, P::whichever},
                             [](const Config& config) { return !config.device.kinds.empty(); }));
  return axis;
}

ChoiceAxis splits() {
  const auto parts = [](const char* path, std::int64_t ParallelConfig::*field, Properties is) {
    return key(path, "2", is, [field](const Config& config) { return config.parallel.*field > 1; });
  };
  Choice chosen = key("parallel.split", "\"auto\"", {P::chooses_split},
                      [](const Config& config) { return config.parallel.split == "auto"; });
  chosen.name = "split auto";
  return {.name = "split",
          .choices = {parts("parallel.pipeline", &ParallelConfig::pipeline, {P::splits_model}),
                      parts("parallel.tensor", &ParallelConfig::tensor, {P::splits_model, P::slices_parameters}),
                      parts("parallel.space", &ParallelConfig::space, {P::splits_model, P::shares_rows}),
                      parts("parallel.time_chunks", &ParallelConfig::time_chunks, {P::cuts_time}), chosen}};
}

ChoiceAxis data() {
  const auto sharding = [](Sharding value, Properties is) {
    return word("data.sharding", name_of(value), value == DataConfig().sharding, is,
                [value](const Config& config) { return config.data.sharding == value; });
  };
  Choice stream = key("data.order", "\"stream\"", {P::own_order, P::equal_windows},
                      [](const Config& config) { return config.data.order == Order::stream; });
  stream.name = "order stream";
  return {.name = "data",
          .choices = {sharding(Sharding::automatic, {}), sharding(Sharding::file, {P::deals_by_file}),
                      sharding(Sharding::record, {}), sharding(Sharding::node, {P::deals_by_file}),
                      sharding(Sharding::replicated, {P::deals_by_file}), stream,
                      key("data.buckets", "[4, 8]", {P::own_order, P::unequal_lengths},
                          [](const Config& config) { return !config.data.buckets.empty(); }),
                      key("data.balance", "\"queue\"", {P::draws_batches, P::own_order},
                          [](const Config& config) { return config.data.balance == Balance::queue; }),
                      key("data.balance", "\"speed\"", {P::moves_shares, P::own_order},
                          [](const Config& config) { return config.data.balance == Balance::speed; }),
                      key("exchange.warmup_replicas", "1", {P::warms_up_by_few, P::own_order},
                          [](const Config& config) { return config.exchange.warmup_replicas > 0; }),
                      key("data.as_replicas", "2", {P::takes_turns},
                          [](const Config& config) { return config.data.as_replicas > 0; })}};
}

ChoiceAxis batches() {
  return {
      .name = "batch",
      .choices = {key("batch.accumulation", "2", {P::several_passes},
                      [](const Config& config) { return config.batch.accumulation > 1; }),
                  key("batch.shares", "[3, 1]", {P::unequal_shares},
                      [](const Config& config) { return !config.batch.shares.empty(); }),
                  key("batch.scale_with_replicas", "true", {P::grows_with_replicas},
                      [](const Config& config) { return config.batch.scale_with_replicas; }),
                  key("run.replay", "\"results/run\"", {P::repeats_order},
                      [](const Config& config) { return !config.run.replay.empty(); }),
                  key("train.reproducible", "true", {P::any_scale},
                      [](const Config& config) { return config.train.reproducible; }),
                  key("model.synchronised_batch_norm", "true", {P::whole_step_statistics}, [](const Config& config) {
                    const auto& layers = config.model.layers;
                    return config.model.synchronised_batch_norm ||
                           std::any_of(layers.begin(), layers.end(),
                                       [](const LayerConfig& layer) { return layer.synchronised; });
                  })}};
}

ChoiceAxis faults() {
  return {.name = "fault",
          .choices = {key("run.on_lost_worker", "\"continue\"", {P::loses_workers},
                          [](const Config& config) { return config.run.on_lost_worker == OnLostWorker::go_on; }),
                      key("exchange.check_messages", "true", {P::checks_messages},
                          [](const Config& config) { return config.exchange.check_messages; })}};
}

}  // namespace

std::string Choice::text() const {
  const bool with_value = worded || value.front() == '"' || value == "true";
  return with_value ? fmt::format("{} = {}", path, value) : path;
}

const std::vector<ChoiceAxis>& choice_axes() {
  static const std::vector<ChoiceAxis> all = {strategies(), algorithms(), reductions(), codecs(),  overlaps(),
                                              rules(),      updates(),    dtypes(),     devices(), splits(),
                                              data(),       batches(),    faults()};
  return all;
}

std::vector<const Choice*> words_of_key(const std::string& path) {
  std::vector<const Choice*> words;
  for (const ChoiceAxis& axis : choice_axes())
    for (const Choice& choice : axis.choices)
      if (choice.worded && choice.path == path) words.push_back(&choice);
  return words;
}

std::vector<const Choice*> choices_of(const Config& config) {
  std::vector<const Choice*> chosen;
  for (const ChoiceAxis& axis : choice_axes())
    for (const Choice& choice : axis.choices)
      if (choice.chosen(config)) chosen.push_back(&choice);
  return chosen;
}

bool any_choice_is(const Config& config, Property property) {
  const std::vector<const Choice*> chosen = choices_of(config);
  return std::any_of(chosen.begin(), chosen.end(),
                     [property](const Choice* choice) { return choice->is.has(property); });
}

}  // namespace echelon::inline config
