// SPDX-License-Identifier: Apache-2.0
// Every all-reduce algorithm with its properties. A new algorithm needs a line here, its plan and its price in
// comm/collective/<name>.cpp, and rows in configs/strategies/ALLREDUCE.md.
//
// These declarations decide which algorithm can be combined with what (config/combinations.cpp), which keys it reads
// (config/unfit.cpp) and which names exchange.inner and exchange.outer accept. tests/contract/test_declared.cpp
// compares them with the plans.
#pragma once

#include "config/traits/words.hpp"

namespace echelon::inline config {

struct AlgorithmTraits {
  std::string_view name;
  // If the number of ranks is a power of two, sums in one binary tree, ((0+1)+(2+3))+.., for every element. If each of
  // k ranks has summed its contiguous share of 2^m leaves in that same tree, the result has the same bits for every
  // power of two k up to 2^m.
  bool one_tree = false;
  bool halves = false;      // consists of a reduce and a gather (comm/collective/halves.hpp)
  bool library = false;     // a library sums uncoded values; its calls have one static order
  bool on_devices = false;  // the GPUs' own library sums, without a plan
  bool nests = false;       // runs other algorithms within hosts and between them
  bool in_memory = false;   // ranks of a host sum uncoded values in shared memory, without messages
  bool measured = false;    // chosen among the others by measurement at the start of the run
  Words reads = {};         // keys of [exchange] that this algorithm reads and some others do not

  // Whether `hierarchical` may run it between hosts.
  constexpr bool plain_plan() const { return !library && !nests && !in_memory && !measured; }
};

// clang-format off
#define ECHELON_ALLREDUCE(X)                                                                       \
  X(naive,                                                                                         \
    .reads = {"bucket_mb", "messages_in_flight", "helpers"})                                       \
  X(ring, .halves = true,                                                                          \
    .reads = {"segment_kb", "bucket_mb", "messages_in_flight", "helpers"})                         \
  X(halving_doubling, .one_tree = true, .halves = true,                                            \
    .reads = {"segment_kb", "bucket_mb", "messages_in_flight", "helpers"})                         \
  X(butterfly, .one_tree = true,                                                                   \
    .reads = {"segment_kb", "bucket_mb", "messages_in_flight", "helpers"})                         \
  X(binomial, .one_tree = true, .halves = true,                                                    \
    .reads = {"segment_kb", "bucket_mb", "messages_in_flight", "helpers"})                         \
  X(tree, .halves = true,                                                                          \
    .reads = {"segment_kb", "bucket_mb", "messages_in_flight", "helpers"})                         \
  X(server, .halves = true,                                                                        \
    .reads = {"segment_kb", "bucket_mb", "servers", "messages_in_flight", "helpers"})              \
  X(shared, .one_tree = true, .halves = true, .in_memory = true, .reads = {"bucket_mb"})           \
  X(hierarchical, .nests = true,                                                                   \
    .reads = {"segment_kb", "bucket_mb", "inner", "outer", "messages_in_flight", "helpers"})       \
  X(mpi, .library = true, .reads = {"bucket_mb"})

// Sums by the devices' own library, without a plan (device/device_allreduce.hpp, exchange/allreduce/on_devices.cpp).
#define ECHELON_DEVICE_ALLREDUCE(X)                                                                \
  X(nccl, .library = true, .on_devices = true, .reads = {"bucket_mb"})
// clang-format on

// The words of exchange.algorithm; `auto` is exchange/allreduce/autotune.hpp.
#define X(algorithm, ...) AlgorithmTraits{.name = #algorithm, __VA_ARGS__},
inline constexpr AlgorithmTraits kAlgorithms[] = {ECHELON_ALLREDUCE(X) ECHELON_DEVICE_ALLREDUCE(X) AlgorithmTraits{
    .name = "auto", .measured = true, .reads = {"messages_in_flight", "helpers"}}};
#undef X

// Returns the traits of a word that config/ has checked, or of a name from the registry; defaults for an unknown name.
constexpr AlgorithmTraits algorithm_traits(std::string_view name) {
  // A loop: under -fsanitize=undefined g++ 12 does not compare a pointer with null in constant expressions.
  for (const AlgorithmTraits& known : kAlgorithms)
    if (known.name == name) return known;
  return {.name = name};
}

}  // namespace echelon::inline config
