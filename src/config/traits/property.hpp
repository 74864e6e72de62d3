// SPDX-License-Identifier: Apache-2.0
// Properties by which choices in a config exclude or require each other. config/choices.cpp assigns them from the
// traits of the registries; config/combinations.cpp lists which of them exclude each other.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace echelon::inline config {

enum class Property : std::uint8_t {
  // Strategies
  own_exchange,       // moves gradients without the all-reduce of exchange.algorithm
  own_overlap,        // has its own overlap, or none: does not read exchange.overlap
  own_reduction,      // has its own way to combine gradients: does not read exchange.reduction
  parts_of_updates,   // takes the optimiser's step on parts of parameters
  unmeasured_parts,   // takes steps on parts whose norms are not known
  plain_messages,     // cannot send what a codec writes
  local_steps,        // replicas take their own optimiser steps
  sums_at_first,      // takes local steps, but sums gradients at first
  own_pace,           // replicas do not step together
  momentum_by_delay,  // delayed updates act as additional momentum
  skips_steps,        // a late replica skips steps
  repeats_order,      // servers apply updates in a recorded order
  whole_model_ranks,  // ranks besides the replicas hold a whole model
  needs_all_workers,  // a step of one worker needs all others
  // All-reduces
  all_reduce,         // a choice of exchange.algorithm other than the default
  library_sums,       // a library sums uncoded values; its calls have one static order
  sums_in_memory,     // ranks of a host sum uncoded values in shared memory
  sums_between_gpus,  // a library sums in GPU memory
  one_binary_tree,    // adds replicas in one binary tree, for every element
  measures_plain,     // chosen by measured times of uncoded values
  combines_pairs,     // combines gradients of two replicas at a time, by dot products of whole parameters
  // Codecs
  coded,       // messages are not plain values
  lossy_code,  // for f32; the encoding error is sent later
  own_route,   // brings its own plan
  // How the optimiser sees gradients
  needs_all_gradients,  // needs all gradients before the first update
  looks_at_whole,       // reads whole parameters or gradients, not parts
  norms_of_tables,      // its step depends on the norm of each whole parameter
  row_by_row,           // updates only the rows that a step touched
  scaled_loss,
  updates_by_layer,  // updates a layer before all gradients are known
  overlaps,          // a choice of exchange.overlap other than the default
  orders_buckets,
  // Splits of a model
  splits_model,
  slices_parameters,
  shares_rows,
  cuts_time,
  chooses_split,
  // Data and batch
  unequal_lengths,  // lengths differ from step to step
  own_order,        // samples follow one order of all records
  deals_by_file,    // samples are assigned by file, or each replica reads all of them
  equal_windows,    // windows of a stream have equal length
  takes_turns,      // one replica processes the samples of several in turn
  draws_batches,    // replicas draw as many batches from one queue as they need
  moves_shares,     // replicas share a step by their measured speed
  warms_up_by_few,  // at first only the first replicas train and share the samples
  several_passes,
  unequal_shares,
  grows_with_replicas,
  whole_step_statistics,
  // Faults
  loses_workers,    // continues without lost workers
  checks_messages,  // each message carries a checksum
  // Reproducibility and device
  any_scale,       // the same bits for any number of replicas
  one_device,      // all ranks compute on one kind
  whichever,       // the kind of device is chosen at the start of the run
  unlike_devices,  // ranks compute on different kinds of devices
  no_gpu,
  double_values,
  f16_values,
  bf16_values,
  computes_double,
  computes_f16,
  computes_bf16,
};

class Properties {
 public:
  constexpr Properties() = default;
  constexpr Properties(std::initializer_list<Property> all) {
    for (const Property one : all) add(one);
  }
  constexpr bool has(Property one) const { return (bits_ >> static_cast<int>(one) & 1) != 0; }
  constexpr Properties& add(Property one, bool is = true) {
    if (is) bits_ |= std::uint64_t{1} << static_cast<int>(one);
    return *this;
  }
  // The properties that both have.
  constexpr Properties operator&(Properties other) const {
    Properties both;
    both.bits_ = bits_ & other.bits_;
    return both;
  }
  // The properties that either has.
  constexpr Properties operator|(Properties other) const {
    Properties either;
    either.bits_ = bits_ | other.bits_;
    return either;
  }
  friend constexpr bool operator==(Properties, Properties) = default;

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace echelon::inline config
