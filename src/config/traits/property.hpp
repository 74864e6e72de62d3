// Properties of choices in a config by which choices exclude or require each other. config/choices.cpp assigns them,
// from the traits of the registries; config/combinations.cpp lists which do not go together.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace echelon::inline config {

enum class Property : std::uint8_t {
  // Strategies
  own_exchange,       // moves gradients without the all-reduce of exchange.algorithm
  own_overlap,        // or overlaps nothing: reads no exchange.overlap
  own_reduction,      // or does not sum gradients: reads no exchange.reduction
  parts_of_updates,   // the optimiser's step is taken on parts of parameters
  unmeasured_parts,   // whose norms are not known
  plain_messages,     // cannot send what a codec writes
  local_steps,        // replicas take optimiser steps of their own
  sums_at_first,      // but sum gradients at first
  own_pace,           // replicas do not step together
  skips_steps,        // a late replica leaves steps out
  repeats_order,      // servers take up updates in a recorded order
  whole_model_ranks,  // ranks that hold a whole model beside the replicas
  needs_all_workers,  // a step of one takes all others
  // All-reduces
  all_reduce,         // a choice of exchange.algorithm other than the default
  library_sums,       // a library sums uncoded values, calls in one static order
  sums_in_memory,     // ranks of a host sum uncoded values in memory that they share
  sums_between_gpus,  // the library sums in memory of GPUs
  one_binary_tree,    // adds replicas in one binary tree, whatever the element
  measures_plain,     // is chosen by measured times of uncoded values
  combines_pairs,     // gradients of two replicas at a time, by dot products of whole parameters
  // Codecs
  coded,       // messages are not plain values
  lossy_code,  // of f32; the encoding error is sent later
  own_route,   // brings its own plan
  // How the optimiser sees gradients
  needs_all_gradients,  // before the first update
  looks_at_whole,       // parameters or gradients, not parts
  norms_of_tables,      // its step depends on the norm of each whole parameter
  row_by_row,           // updates the rows that a step touched
  scaled_loss,
  updates_by_layer,  // before all gradients are there
  overlaps,          // a choice of exchange.overlap other than the default
  orders_buckets,
  // Splits of a model
  splits_model,
  slices_parameters,
  shares_rows,
  cuts_time,
  chooses_split,
  // Data and batch
  unequal_lengths,  // from step to step
  own_order,        // samples follow one order of all records
  deals_by_file,    // samples are dealt by file, or each replica reads all
  equal_windows,    // of a stream
  takes_turns,      // one replica processes the samples of several in turn
  draws_batches,    // replicas draw batches from one queue, as many as they need
  moves_shares,     // replicas share a step by their measured speed
  warms_up_by_few,  // the first replicas share the samples at first, the others take none
  several_passes,
  unequal_shares,
  grows_with_replicas,
  whole_step_statistics,
  // Faults
  loses_workers,    // goes on without them
  checks_messages,  // each message carries a checksum
  // Reproducibility and device
  any_scale,       // the same bits for any number of replicas
  one_device,      // all ranks compute on one kind
  whichever,       // the kind of device is chosen when the run starts
  unlike_devices,  // ranks compute on devices of several kinds
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
  // What both have.
  constexpr Properties operator&(Properties other) const {
    Properties both;
    both.bits_ = bits_ & other.bits_;
    return both;
  }
  friend constexpr bool operator==(Properties, Properties) = default;

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace echelon::inline config
