// A grid on one thread of the CPU: block after block, the threads of a block as fibers that take turns at barriers.
//
// Who runs first changes from launch to launch: threads and blocks go in rising, falling and drawn orders, anew behind
// each barrier, so that a result which needs a barrier that is not there comes out wrong. A barrier that some threads
// of a block (or named lanes of a warp) do not reach, because they have ended or wait elsewhere, is a DivergenceError.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>

struct dim3;

namespace echelon::on_cpu {

struct DivergenceError : std::logic_error {
  using std::logic_error::logic_error;
};

enum class Order { rising, falling, drawn };
// Of the next launches, with the draws of `seed`; until it is called, each launch has another one.
void set_order(Order order, std::uint64_t seed = 1);
void vary_order(std::uint64_t seed);

// Calls body(arguments) once a thread, with the indices of cuda_runtime.h set.
void run_grid(const dim3& grid, const dim3& block, void (*body)(const void*), const void* arguments);

// All threads of the block: whether one of them votes so.
bool meet_block(bool vote, const std::source_location& at);
// The named lanes of a warp: the votes, a bit a lane.
unsigned meet_warp(unsigned lanes, bool vote, const std::source_location& at);

}  // namespace echelon::on_cpu
