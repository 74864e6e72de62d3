// SPDX-License-Identifier: Apache-2.0
// The contract of every transport (comm/transport.hpp), as functions that all ranks of a world call together: from
// threads for `local`, under mpirun for MPI. They throw at the first violation and use no Catch2 macro.
#pragma once

#include <memory>
#include <string>

#include "comm/engine.hpp"
#include "comm/transport.hpp"

namespace echelon::verify {

// Checks order, any source, sizes up to several megabytes, counters, split, hosts, library all-reduce, then truncation.
void check_transport(Transport& transport);

// Checks all algorithms at this world's size, in f32 and f64, with few and many elements: exact sums and equal bits.
void check_allreduce(Engine& engine, std::int64_t elems);
void check_allreduce(Engine& engine, std::int64_t elems, const std::string& name);  // checks one algorithm
// Compares the results of Group's functions with the expected ones.
void check_group(Engine& engine);
// Runs many plans on many channels, submitted in a different order on every rank.
void check_many_channels(Engine& engine, int channels);
// Splits an engine, and its parts again; their groups run beside plans of all ranks on the same channels.
void check_engine_split(Engine& engine);

}  // namespace echelon::verify
