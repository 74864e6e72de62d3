// SPDX-License-Identifier: Apache-2.0
// Tests of the stand-in itself: indices, barriers, votes, refused uses, and halves.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "base/dtype.hpp"
#include "cuda/kernels/each.cuh"
#include "cuda/kernels/element.cuh"
#include "tests/support/halves.hpp"
#include "tests/support/random.hpp"

using namespace echelon;
using namespace echelon::cuda;
using namespace echelon::on_cpu;

namespace {

constexpr int kMost = 1024;

void index_kernel(std::vector<int>* seen) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  ++(*seen)[block * blockDim.x * blockDim.y * blockDim.z + thread];
}

// Each thread repeatedly takes its left neighbour's number.
void rotate_kernel(int rounds, bool before, bool behind, int* result) {
  __shared__ int values[kMost];
  const int n = static_cast<int>(blockDim.x), own = static_cast<int>(threadIdx.x);
  int value = own;
  for (int round = 0; round < rounds; ++round) {
    values[own] = value;
    if (before) __syncthreads();
    value = values[(own + 1) % n];
    if (behind) __syncthreads();
  }
  result[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

void vote_kernel(unsigned* votes, int* any) {
  const bool odd = threadIdx.x % 3 == 0;
  votes[threadIdx.x] = __ballot_sync(0xffffffffu, odd);
  any[threadIdx.x] = __syncthreads_or(blockIdx.x == 1 && threadIdx.x == 77);
}

// Computes the sum of each warp's threads in every one of them.
void warp_sum_kernel(int* sums) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (threadIdx.y == 1) return;  // a whole warp may end before
  sums[thread] = lanes_reduce<kWarpLanes>(thread, Plus{});
}
void leaving_kernel(unsigned last) {
  if (threadIdx.x == last) return;
  __syncthreads();
}
void two_barriers_kernel(unsigned last) {
  if (threadIdx.x == last) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
void lanes_kernel() {
  if (threadIdx.x != 40) (void)__ballot_sync(0xffffffffu, 1);
}

// Returns how many of a rotation's results are wrong.
int wrong_after(int threads, bool before, bool behind) {
  std::vector<int> result(static_cast<std::size_t>(3 * threads));
  launch(rotate_kernel, 3, static_cast<unsigned>(threads), nullptr, 7, before, behind, result.data());
  int wrong = 0;
  for (std::size_t i = 0; i < result.size(); ++i)
    wrong += result[i] == (static_cast<int>(i) % threads + 7) % threads ? 0 : 1;
  return wrong;
}

}  // namespace

TEST_CASE("every thread of a grid runs once, in every order", "[cuda_on_cpu]") {
  for (const Order order : {Order::rising, Order::falling, Order::drawn}) {
    set_order(order, test::test_seed());
    for (const dim3& grid : {dim3(1), dim3(7, 3, 2), dim3(257)})
      for (const dim3& block : {dim3(1), dim3(31), dim3(5, 7, 2), dim3(1024)}) {
        std::vector<int> seen(std::size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z);
        launch(index_kernel, grid, block, nullptr, &seen);
        CHECK(std::set<int>(seen.begin(), seen.end()) == std::set<int>{1});
      }
  }
}

TEST_CASE("a barrier keeps a block together, and a missing one shows", "[cuda_on_cpu]") {
  for (const int threads : {2, 31, 256, 1024}) {
    int without_first = 0, without_second = 0;
    for (const Order order : {Order::rising, Order::falling, Order::drawn}) {
      set_order(order, test::test_seed());
      CHECK(wrong_after(threads, true, true) == 0);
      without_first += wrong_after(threads, false, true);
      without_second += wrong_after(threads, true, false);
    }
    CHECK(without_first > 0);
    CHECK(without_second > 0);
  }
}

TEST_CASE("lanes of a warp read each other's values", "[cuda_on_cpu]") {
  for (const Order order : {Order::rising, Order::falling, Order::drawn}) {
    set_order(order, test::test_seed());
    std::vector<int> sums(96, -1);
    launch(warp_sum_kernel, 1, dim3(32, 3), nullptr, sums.data());
    for (int t = 0; t < 96; ++t) CHECK(sums[static_cast<std::size_t>(t)] == (t / 32 == 1 ? -1 : t < 32 ? 496 : 2544));
  }
}

TEST_CASE("votes of a warp and of a block", "[cuda_on_cpu]") {
  vary_order(test::test_seed());
  for (const unsigned blocks : {1u, 2u}) {
    std::vector<unsigned> votes(256);
    std::vector<int> any(256);
    set_order(Order::rising);  // the answers of the last block are kept
    launch(vote_kernel, blocks, 256, nullptr, votes.data(), any.data());
    for (unsigned t = 0; t < 256; ++t) {
      CHECK(any[t] == (blocks == 2 ? 1 : 0));
      for (unsigned lane = 0; lane < 32; ++lane)
        if ((votes[t] >> lane & 1u) != ((t / 32 * 32 + lane) % 3 == 0 ? 1u : 0u)) FAIL("vote of lane " << lane);
    }
  }
}

TEST_CASE("a barrier that not all threads reach is an error, and the next launch is whole", "[cuda_on_cpu]") {
  for (const Order order : {Order::rising, Order::falling, Order::drawn}) {
    set_order(order, test::test_seed());
    for (const unsigned last : {0u, 100u, 255u}) {
      CHECK_THROWS_AS(launch(leaving_kernel, 2, 256, nullptr, last), DivergenceError);
      CHECK_THROWS_AS(launch(two_barriers_kernel, 2, 256, nullptr, last), DivergenceError);
    }
    CHECK_NOTHROW(launch(leaving_kernel, 2, 256, nullptr, 256u));
    CHECK_THROWS_AS(launch(lanes_kernel, 1, 64, nullptr), DivergenceError);
    CHECK_THROWS_AS(launch(leaving_kernel, 1, 1025, nullptr, 2000u), std::logic_error);
    CHECK_THROWS_AS(launch(leaving_kernel, dim3(1, 65536), 1, nullptr, 2000u), std::logic_error);
    CHECK(wrong_after(256, true, true) == 0);
  }
}

TEST_CASE("halves round to nearest, ties to even", "[cuda_on_cpu]") {
  int wrong = 0;
  const auto check = [&](float value) {
    Half half(value);
    BHalf bhalf(value);
    if (std::isnan(value)) {
      wrong += std::isnan(wide(half)) && std::isnan(wide(bhalf)) ? 0 : 1;
      return;
    }
    wrong += half.bits == verify::to_half(DType::f16, value) ? 0 : 1;
    wrong += bhalf.bits == verify::to_half(DType::bf16, value) ? 0 : 1;
    wrong += wide(half) == verify::from_half(DType::f16, half.bits) ? 0 : 1;
    wrong += wide(bhalf) == verify::from_half(DType::bf16, bhalf.bits) ? 0 : 1;
  };
  for (std::uint32_t high = 0; high < 0x10000; ++high)
    for (const std::uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(std::bit_cast<float>(high << 16 | low));
  CHECK(wrong == 0);
}
