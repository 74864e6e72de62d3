// SPDX-License-Identifier: Apache-2.0
// Runs a grid on one thread of the CPU, block by block; the threads of a block are fibers that take turns at barriers.
//
// The order of execution changes from launch to launch: threads and blocks run in rising, falling and random orders,
// which change at each barrier, so that a result that lacks a necessary barrier comes out wrong. If some threads of a
// block (or named lanes of a warp) do not reach a barrier, because they have ended or wait elsewhere, DivergenceError
// is thrown.
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
// The order of the following launches, with random numbers from `seed`; until it is called, each launch has another
// order.
void set_order(Order order, std::uint64_t seed = 1);
void vary_order(std::uint64_t seed);

// Calls body(arguments) once per thread, with the indices of cuda_runtime.h set.
void run_grid(const dim3& grid, const dim3& block, void (*body)(const void*), const void* arguments);

// A barrier for all threads of the block; returns whether any of them votes true.
bool meet_block(bool vote, const std::source_location& at);
// A barrier for the named lanes of a warp; returns their votes, one bit per lane.
unsigned meet_warp(unsigned lanes, bool vote, const std::source_location& at);

}  // namespace echelon::on_cpu
