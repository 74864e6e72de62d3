// SPDX-License-Identifier: Apache-2.0
#include "config/combinations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/keys.hpp"
#include "config/refuse.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline config {
namespace {

using P = Property;
constexpr std::size_t kMostListed = 4;
constexpr std::string_view kDrawn = "replicas draw batches of one size from one order of all records";
constexpr std::string_view kAllWorkers = "every step takes the gradients of all workers";
constexpr std::string_view kCutAnew = "the batch is divided again among the remaining workers";
constexpr std::string_view kNotWhole = "a split model is incomplete without one of its ranks";
constexpr std::string_view kStop = "nearest valid: \"stop\"";
constexpr std::string_view kDealt = "a warm-up deals samples by record, each once per epoch";

bool counts(const Exclusion& rule, const std::vector<const Choice*>& chosen) {
  return !rule.unless ||
         std::none_of(chosen.begin(), chosen.end(), [&](const Choice* c) { return c->is.has(*rule.unless); });
}

std::optional<Clash> clash_by(const Exclusion& rule, const Choice& one, const Choice& blamed) {
  if (!one.is.has(rule.one) || !blamed.is.has(rule.other)) return {};
  return Clash{&one, &blamed, rule.reason, rule.verdict, rule.cure};
}

std::optional<Clash> clash_by(const Requirement& rule, const Choice& one, const Choice& word) {
  if (!one.is.has(rule.one) || word.path != rule.path || word.is.has(rule.needed)) return {};
  if (rule.blames_one) return Clash{&word, &one, rule.reason, Verdict::refused, {}};
  return Clash{&one, &word, rule.reason, Verdict::refused, {}};
}

// Returns "server" for a key of [exchange.server], and "" for other keys.
std::string table_of(const Choice& key) {
  const std::string tables = "exchange.";
  const std::size_t dot = key.path.find('.', tables.size());
  if (!key.path.starts_with(tables) || dot == std::string::npos) return {};
  return key.path.substr(tables.size(), dot - tables.size());
}

// Returns the clash of a key of the table [exchange.<strategy>] with another strategy.
std::optional<Clash> clash_of_table(const Choice& strategy, const Choice& key) {
  const std::string table = table_of(key);
  if (strategy.path != "exchange.strategy" || table.empty() || strategy_traits(strategy.name).reads_table(table))
    return {};
  return Clash{&strategy, &key, "the key belongs to another strategy", Verdict::not_read, {}};
}

// Returns the clash of keys of two tables [exchange.<strategy>] if no strategy reads both.
std::optional<Clash> clash_of_tables(const Choice& one, const Choice& key) {
  const std::string first = table_of(one), second = table_of(key);
  if (first.empty() || second.empty()) return {};
  for (const StrategyTraits& strategy : kStrategies)
    if (strategy.reads_table(first) && strategy.reads_table(second)) return {};
  return Clash{&one, &key, "no strategy reads both keys", Verdict::not_read, {}};
}

bool fits(const Choice& word, const std::vector<const Choice*>& chosen) {
  return std::none_of(chosen.begin(), chosen.end(), [&](const Choice* other) {
    const auto clash = other->path == word.path ? std::nullopt : clash_between(word, *other);
    if (!clash) return false;
    return clash->verdict == Verdict::refused || (clash->verdict == Verdict::not_read && clash->blamed == &word);
  });
}

// Returns "\"f32\" or \"f64\"", the words of this key that fit the rest; only its default if there are many.
std::string fitting_words(const std::string& path, const std::vector<const Choice*>& chosen) {
  std::vector<std::string> fitting, neutral;
  for (const Choice* word : words_of_key(path)) {
    if (!fits(*word, chosen)) continue;
    fitting.push_back(word->value);
    if (word->neutral) neutral.push_back(word->value);
  }
  if (fitting.size() > kMostListed) fitting = neutral.empty() ? std::vector{fitting.front()} : neutral;
  return joined(fitting, " or ");
}

}  // namespace

const std::vector<Exclusion>& exclusions() {
  static const std::vector<Exclusion> all = {
      // How gradients travel
      {P::own_exchange, P::all_reduce, "the strategy has its own exchange and does not read exchange.algorithm",
       Verdict::not_read},
      {P::own_overlap, P::overlaps, "the overlap of the strategy is fixed, and it does not read exchange.overlap",
       Verdict::not_read},
      {P::own_route, P::all_reduce, "the codec has a fixed exchange of its own", Verdict::not_read},
      {P::own_reduction, P::combines_pairs, "the strategy does not sum gradients over replicas", Verdict::not_read},
      {P::combines_pairs, P::all_reduce, "Adasum has a fixed exchange of its own, along a butterfly",
       Verdict::not_read},
      {P::library_sums, P::orders_buckets, "the library's collectives have one static order and no priorities",
       Verdict::gives_way, "leave it out", P::own_exchange},
      {P::needs_all_gradients, P::updates_by_layer,
       "every gradient is needed before the first update, and overlap = \"layers\" updates layer by layer",
       Verdict::gives_way, "nearest valid: \"buckets\"", P::own_overlap},
      {P::coded, P::library_sums, "the library sums uncoded values and cannot decode messages"},
      {P::coded, P::sums_in_memory, "values are summed in shared memory as they are, not as messages of a codec"},
      {P::coded, P::measures_plain, "the algorithm is tuned with uncoded messages, not with those of a codec"},
      {P::combines_pairs, P::coded, "Adasum takes dot products of uncoded gradients"},
      {P::combines_pairs, P::row_by_row, "Adasum combines whole tables, and the touched rows are not tracked"},
      {P::combines_pairs, P::slices_parameters, "Adasum takes dot products of whole parameters, not of slices"},
      {P::combines_pairs, P::shares_rows, "ranks that split images hold parts of the sums of one replica"},
      {P::combines_pairs, P::chooses_split, "a split of parameters could be chosen, and Adasum takes whole ones"},
      {P::combines_pairs, P::takes_turns, "gradients of replicas that are processed in turn are summed"},
      {P::combines_pairs, P::whole_step_statistics, "synchronised batch norm makes one sum of all replicas' gradients"},
      {P::plain_messages, P::coded, "the strategy sends uncoded values"},
      {P::local_steps, P::sums_between_gpus, "weights are averaged in host memory"},
      {P::no_gpu, P::sums_between_gpus, "the algorithm sums between GPUs, and the device is not a GPU"},
      {P::double_values, P::lossy_code, "a lossy codec takes gradients of f32"},
      {P::scaled_loss, P::lossy_code,
       "a lossy codec keeps a residual in units of a loss scale that may change; bf16 needs none"},
      // Data that the optimiser needs
      {P::norms_of_tables, P::row_by_row, "the rule's steps depend on the norm of a whole table"},
      {P::coded, P::row_by_row, "the touched rows must be known, and coded tables are sent whole"},
      {P::unmeasured_parts, P::looks_at_whole,
       "servers update parts of parameters, but whole parameters or all gradients are needed"},
      {P::parts_of_updates, P::row_by_row, "servers update parts of tables, whose touched rows they do not know"},
      {P::scaled_loss, P::sums_at_first,
       "each replica scales its loss by itself, and gradients of different scales cannot be summed; bf16 needs none"},
      {P::local_steps, P::shares_rows,
       "ranks that split images hold parts of the gradient by which a replica takes its own step"},
      {P::whole_step_statistics, P::own_pace,
       "synchronised batch norm sums over replicas in every pass, and replicas do not step together"},
      {P::whole_step_statistics, P::skips_steps,
       "synchronised batch norm sums over replicas in every pass, and a late replica does not take part"},
      // Splits of a model
      {P::splits_model, P::skips_steps, "the ranks of one replica would have to leave out the same steps"},
      {P::chooses_split, P::skips_steps, "the ranks of one replica would have to leave out the same steps"},
      {P::slices_parameters, P::own_pace,
       "parameters that all shards hold whole would be updated in different orders; use parallel.pipeline instead"},
      {P::chooses_split, P::own_pace,
       "split = \"auto\" could slice parameters, and whole ones would be updated in different orders on each shard"},
      {P::splits_model, P::draws_batches, "the ranks of one replica would have to draw the same batches"},
      {P::splits_model, P::repeats_order, "the order of arrivals is recorded for whole models only"},
      {P::chooses_split, P::splits_model, "split = \"auto\" chooses the split itself", Verdict::not_read},
      {P::whole_model_ranks, P::chooses_split,
       "split = \"auto\" uses all ranks, but some are servers; set pipeline, tensor or space instead"},
      {P::splits_model, P::whole_model_ranks,
       "a server on a rank of its own holds a whole model; put servers inside the workers instead"},
      {P::splits_model, P::unequal_lengths,
       "tensors between the ranks of a model have one length; pad all sequences to it"},
      {P::cuts_time, P::unequal_lengths, "chunks are cut for sequences of one length"},
      {P::cuts_time, P::shares_rows, "one splits the time steps of recurrent layers, the other the rows of images"},
      {P::shares_rows, P::takes_turns,
       "ranks that split images process the samples of one replica; use parallel.pipeline or parallel.tensor instead"},
      // Ranks that are lost
      {P::needs_all_workers, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::combines_pairs, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::overlaps, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::scaled_loss, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::any_scale, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::splits_model, P::loses_workers, kNotWhole, Verdict::refused, kStop},
      {P::chooses_split, P::loses_workers, kNotWhole, Verdict::refused, kStop},
      {P::library_sums, P::loses_workers, "the library sums over all ranks that it was started with", Verdict::refused,
       kStop},
      {P::coded, P::loses_workers, "the rounding errors that lost workers kept would be missing", Verdict::refused,
       kStop},
      {P::unequal_shares, P::loses_workers, kCutAnew, Verdict::refused, kStop},
      {P::grows_with_replicas, P::loses_workers, kCutAnew, Verdict::refused, kStop},
      {P::moves_shares, P::loses_workers, kAllWorkers, Verdict::refused, kStop},
      {P::repeats_order, P::loses_workers, "the recorded order covers all workers", Verdict::refused, kStop},
      {P::warms_up_by_few, P::loses_workers, "the steps of a warm-up depend on the number of workers", Verdict::refused,
       kStop},
      {P::sums_in_memory, P::loses_workers, "memory is shared by all ranks that the run was started with",
       Verdict::refused, kStop},
      {P::library_sums, P::checks_messages, "the library's own messages carry no checksum", Verdict::refused,
       "nearest valid: false", P::own_exchange},
      {P::sums_in_memory, P::checks_messages, "sums in shared memory are not messages", Verdict::refused,
       "nearest valid: false", P::own_exchange},
      // Data and batch
      {P::equal_windows, P::skips_steps,
       "states are carried from each window of a stream to the next, and a late replica leaves windows out"},
      {P::equal_windows, P::unequal_lengths, "windows of a stream are equally long"},
      {P::own_order, P::deals_by_file, "samples are distributed from one order of all records"},
      {P::unlike_devices, P::one_device, "device.kinds replaces device.kind"},
      {P::draws_batches, P::unequal_shares, kDrawn},
      {P::draws_batches, P::takes_turns, kDrawn},
      {P::draws_batches, P::equal_windows, kDrawn},
      {P::draws_batches, P::unequal_lengths, kDrawn},
      {P::moves_shares, P::own_pace, "replicas that step at their own pace share samples by data.balance = \"queue\""},
      {P::moves_shares, P::local_steps, "each replica takes steps of its own samples, whose number stays the same"},
      {P::moves_shares, P::skips_steps, "every replica would have to know which samples a late one leaves out"},
      {P::moves_shares, P::splits_model, "activations between the ranks of a model have one size"},
      {P::moves_shares, P::chooses_split, "activations between the ranks of a model have one size"},
      {P::moves_shares, P::equal_windows, "states are carried from step to step on the rank that has the row"},
      {P::moves_shares, P::takes_turns, "one replica processes the samples of all"},
      {P::moves_shares, P::any_scale, "micro-shards are dealt evenly"},
      {P::repeats_order, P::draws_batches, "which replica drew which batch is not recorded"},
      {P::warms_up_by_few, P::draws_batches,
       "a warm-up reserves steps for the first replicas, and any replica may draw any batch of the queue"},
      {P::warms_up_by_few, P::takes_turns, kDealt},
      {P::warms_up_by_few, P::equal_windows, kDealt},
      {P::warms_up_by_few, P::unequal_lengths, kDealt},
      {P::whole_step_statistics, P::several_passes, "synchronised batch norm needs all samples of a step at once"},
      {P::whole_step_statistics, P::takes_turns,
       "synchronised batch norm needs all samples of a step at once, but replicas are processed in turn"},
      {P::grows_with_replicas, P::unequal_shares, "shares cut a fixed global batch"},
      // The same bits at any scale
      {P::any_scale, P::own_exchange, "the strategy adds gradients in an order of its own"},
      {P::any_scale, P::local_steps, "replicas take steps of their own, whose number depends on that of the replicas"},
      {P::any_scale, P::combines_pairs, "the result depends on the gradient of each replica, not on their sum alone"},
      {P::any_scale, P::lossy_code, "a lossy codec rounds sums that depend on the number of replicas"},
      {P::any_scale, P::several_passes, "train.micro_shards already determines the number of passes of a step"},
      {P::any_scale, P::unequal_shares, "every replica takes the same number of micro-shards"},
      {P::any_scale, P::grows_with_replicas, "a step must hold the same samples for every number of replicas"},
      {P::any_scale, P::deals_by_file, "the samples of a step depend on the number of replicas"},
      {P::any_scale, P::takes_turns, "one replica gives the same bits as several without data.as_replicas"},
      {P::any_scale, P::row_by_row, "tables of embeddings are summed and updated whole"},
      {P::any_scale, P::whole_step_statistics,
       "batch norm takes its statistics over each micro-shard, which no number of replicas changes"},
      {P::any_scale, P::shares_rows,
       "ranks that split images sum in a different tree; use parallel.pipeline or parallel.tensor instead"},
      {P::unlike_devices, P::sums_between_gpus, "a GPU's library sums between GPUs only"},
      {P::unlike_devices, P::splits_model, "the parts of a replica exchange activations in one layout"},
      {P::unlike_devices, P::chooses_split, "the parts of a replica exchange activations in one layout"},
      {P::any_scale, P::whichever, "results are bitwise equal on one kind of device only; name the device"},
  };
  return all;
}

const std::vector<Requirement>& requirements() {
  static const std::vector<Requirement> all = {
      {.one = P::any_scale,
       .path = "exchange.algorithm",
       .needed = P::one_binary_tree,
       .reason = "the algorithm does not add replicas in one binary tree"},
      {.one = P::double_values,
       .path = "device.kind",
       .needed = P::computes_double,
       .reason = "the device does not compute in f64",
       .blames_one = true},
      {P::f16_values, "device.kind", P::computes_f16, "the device does not compute in f16", true},
      {P::bf16_values, "device.kind", P::computes_bf16, "the device does not compute in bf16", true},
      {.one = P::draws_batches,
       .path = "exchange.strategy",
       .needed = P::own_pace,
       .reason = "its replicas count steps together: each takes equally many batches, and none is drawn from a queue",
       .blames_one = true},
      {.one = P::warms_up_by_few,
       .path = "exchange.strategy",
       .needed = P::own_pace,
       .reason = "replicas that step together all take samples in every step",
       .blames_one = true},
      {.one = P::repeats_order,
       .path = "exchange.strategy",
       .needed = P::own_pace,
       .reason = "replicas that step together have no order of arrivals that matters, and none is recorded",
       .blames_one = true},
  };
  return all;
}

namespace {

// Finds a clash by a single rule.
std::optional<Clash> direct_clash(const Choice& a, const Choice& b) {
  if (a.worded && b.worded && a.path == b.path) return {};  // only one of them can be chosen
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (const auto clash = clash_of_table(*one, *other)) return clash;
    if (const auto clash = clash_of_tables(*one, *other)) return clash;
    for (const Requirement& rule : requirements())
      if (const auto clash = clash_by(rule, *one, *other)) return clash;
  }
  for (const Exclusion& rule : exclusions())
    for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
      if (const auto clash = clash_by(rule, *one, *other); clash && counts(rule, {&a, &b})) return clash;
  return {};
}

// Finds a clash if `other` excludes every word that `one` requires of a key.
std::optional<Clash> clash_by_requirement(const Choice& one, const Choice& other) {
  for (const Requirement& rule : requirements()) {
    if (!one.is.has(rule.one) || other.path == rule.path) continue;
    std::optional<Clash> found;
    bool fits = false;
    for (const Choice* word : words_of_key(std::string(rule.path))) {
      if (!word->is.has(rule.needed)) continue;
      const auto clash = direct_clash(*word, other);
      const bool stops = clash && clash->verdict != Verdict::gives_way;
      fits = fits || !stops;
      if (stops && !found) found = Clash{&one, &other, clash->reason, Verdict::refused, {}};
    }
    if (!fits && found) return found;
  }
  return {};
}

}  // namespace

std::optional<Clash> clash_between(const Choice& a, const Choice& b) {
  if (const auto clash = direct_clash(a, b)) return clash;
  if (const auto clash = clash_by_requirement(a, b)) return clash;
  return clash_by_requirement(b, a);
}

std::vector<Clash> clashes(const Config& config) {
  const std::vector<const Choice*> chosen = choices_of(config);
  std::vector<Clash> found;
  const auto look = [&](const auto& rule) {
    for (const Choice* one : chosen)
      for (const Choice* other : chosen)
        if (const auto clash = one == other ? std::nullopt : clash_by(rule, *one, *other)) found.push_back(*clash);
  };
  for (const Exclusion& rule : exclusions())
    if (counts(rule, chosen)) look(rule);
  for (const Requirement& rule : requirements()) look(rule);
  return found;
}

std::string cure_of(const Clash& clash, const Config& config) {
  if (!clash.cure.empty()) return std::string(clash.cure);
  const std::vector<const Choice*> chosen = choices_of(config);
  const Choice &blamed = *clash.blamed, &one = *clash.one;
  std::string cure;
  if (blamed.worded) {
    const std::string words = fitting_words(blamed.path, chosen);
    if (!words.empty()) cure = "nearest valid: " + words;
  } else {
    cure = fmt::format("leave {} out", blamed.path);
  }
  const std::string others = one.worded ? fitting_words(one.path, chosen) : std::string();
  if (!others.empty()) cure += fmt::format("{}write {} = {}", cure.empty() ? "" : ", or ", one.path, others);
  return cure;
}

void refuse_clashes(const Config& config) {
  for (const Clash& clash : clashes(config)) {
    if (clash.verdict != Verdict::refused) continue;
    const bool given = config.origins.contains(clash.blamed->path);
    const std::string cure = cure_of(clash, config);
    refuse(config, given ? clash.blamed->path : clash.one->path,
           fmt::format("{} cannot be combined with {}: {}{}{}", clash.blamed->text(), clash.one->text(), clash.reason,
                       cure.empty() ? "" : "; ", cure));
  }
}

}  // namespace echelon::inline config
