// What every transport promises (comm/transport.hpp), as a function that all ranks of a world call together: from
// threads for `local`, under mpirun for MPI. Throws at the first broken promise; uses no Catch2 macro.
#pragma once

#include <memory>
#include <string>

#include "comm/engine.hpp"
#include "comm/transport.hpp"

namespace echelon::verify {

// Order, any source, sizes from 0 to several megabytes, counters, split, hosts, library all-reduce, truncation last.
void check_transport(Transport& transport);

// All algorithms at this world's size, f32 and f64, few and many elements: exact sums and equal bits.
void check_allreduce(Engine& engine, std::int64_t elems);
void check_allreduce(Engine& engine, std::int64_t elems, const std::string& name);  // of one algorithm
// Group's functions against what they must give.
void check_group(Engine& engine);
// Many plans on many channels, submitted in a different order on every rank.
void check_many_channels(Engine& engine, int channels);
// Parts of an engine, and parts of parts: groups of their own, beside plans of all ranks on the same channels.
void check_engine_split(Engine& engine);

}  // namespace echelon::verify
