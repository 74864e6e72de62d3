// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_on_cpu/blocks.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::on_cpu {
namespace {

constexpr std::size_t kStackBytes = std::size_t{80} << 10;
constexpr unsigned kWarp = 32, kMostThreads = 1024;

// Saves the registers that a function must preserve on this stack, and continues on the other stack where it was left.
__attribute__((naked, noinline, no_sanitize("address", "undefined"))) void go_on(void** /*from*/, void* /*to*/) {
  asm volatile(
      "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}

enum class State { fresh, running, at_block, at_warp, ended };

struct Fiber {
  // The start of a stack differs from fiber to fiber; otherwise all would use the same few cache lines.
  Fiber(void (*entry)(), std::size_t index)
      : stack(new std::byte[kStackBytes]), top(stack.get() + kStackBytes - 64 - index % 64 * 256) {
    static_cast<void**>(top)[6] = reinterpret_cast<void*>(entry);  // behind six registers; it returns to nobody
  }
  std::unique_ptr<std::byte[]> stack;
  void* top;
};

struct Thread {
  State state = State::fresh;
  Fiber* fiber = nullptr;
  std::source_location at;
  unsigned lanes = 0;
  bool vote = false;
  unsigned votes = 0;
};

// The numbers 0 .. n-1, each once.
struct Turns {
  std::uint64_t n, step = 1, at = 0;
  Turns(std::uint64_t count, Order order, std::uint64_t key) : n(count) {
    if (order == Order::falling) step = at = n - 1;
    if (order != Order::drawn) return;
    at = mix64(key) % n;
    for (step = mix64(key + 1) % n; std::gcd(step, n) != 1; step = (step + 1) % n) {
    }
  }
  unsigned next() {
    const std::uint64_t turn = at;
    at += step;
    if (at >= n) at -= n;
    return static_cast<unsigned>(turn);
  }
};

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

class Grid {
 public:
  void run(const dim3& grid, const dim3& block, void (*body)(const void*), const void* arguments);
  // Waits until all threads of the block have arrived.
  bool meet_block(bool vote, const std::source_location& at) {
    if (at_block_++ == 0) block_at_ = at;
    mixed_ = mixed_ || !same(at, block_at_);
    votes_ = votes_ || vote;
    wait(State::at_block, at);
    return any_;
  }
  unsigned meet_warp(unsigned lanes, bool vote, const std::source_location& at) {
    ++at_warp_;
    thread().lanes = lanes;
    thread().vote = vote;
    wait(State::at_warp, at);
    return thread().votes;
  }
  void keep_order(Order order, std::uint64_t seed) {
    kept_ = order;
    seed_ = seed;
  }
  void vary(std::uint64_t seed) {
    kept_.reset();
    seed_ = seed;
  }

 private:
  static void work();
  Thread& thread() { return threads_[now_]; }
  void wait(State state, const std::source_location& at) {
    thread().state = state;
    thread().at = at;
    go_on(&current_->top, scheduler_);
  }
  void run_block();
  void become(unsigned t);
  void resume(Fiber* fiber);
  Turns turns(std::uint64_t n) { return {n, order_, hash_combine(seed_, ++phases_)}; }
  bool release_warps();
  void release_block();
  [[noreturn]] void diverged(const std::source_location& at);

  std::optional<Order> kept_;
  Order order_ = Order::rising;
  std::uint64_t seed_ = 1, launches_ = 0, phases_ = 0, started_ = 0;
  Turns starts_{1, Order::rising, 0};
  std::vector<Thread> threads_;
  unsigned now_ = 0;
  std::size_t ended_ = 0, at_block_ = 0, at_warp_ = 0;
  std::source_location block_at_;     // place of the first thread that waits there,
  bool mixed_ = false;                // and whether another thread waits elsewhere
  bool votes_ = false, any_ = false;  // votes so far, and the result of the last barrier
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* current_ = nullptr;
  void* scheduler_ = nullptr;
  void (*body_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
};

Grid the_grid;

// A fiber takes fresh threads one after another; a thread that waits keeps its fiber to its end.
void Grid::work() {
  Grid& grid = the_grid;
  for (;;) {
    while (grid.started_ < grid.threads_.size()) {
      ++grid.started_;
      grid.become(grid.starts_.next());
      grid.thread().fiber = grid.current_;
      grid.body_(grid.arguments_);
      grid.thread().state = State::ended;
      ++grid.ended_;
    }
    grid.idle_.push_back(grid.current_);
    go_on(&grid.current_->top, grid.scheduler_);
  }
}

void Grid::become(unsigned t) {
  now_ = t;
  thread().state = State::running;
  threadIdx = {t, 0, 0};
  if (t < blockDim.x) return;  // nearly always true: divisions are slow
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}

void Grid::resume(Fiber* fiber) {
  current_ = fiber;
  go_on(&scheduler_, fiber->top);
}

// The barrier `at` was not reached by all threads. Objects on the stacks of the fibers are abandoned.
void Grid::diverged(const std::source_location& at) {
  std::size_t there = 0, ended = 0;
  for (const Thread& thread : threads_) {
    ended += thread.state == State::ended ? 1 : 0;
    there += thread.state != State::ended && thread.at.line() == at.line() ? 1 : 0;
  }
  const std::string what = fmt::format(
      "{}:{} is reached by {} of {} threads of block ({}, {}, {}); {} have ended, {} wait elsewhere", at.file_name(),
      at.line(), there, threads_.size(), blockIdx.x, blockIdx.y, blockIdx.z, ended, threads_.size() - there - ended);
  fibers_.clear();
  idle_.clear();
  throw DivergenceError(what);
}

bool Grid::release_warps() {
  if (at_warp_ == 0) return false;
  at_warp_ = 0;
  bool released = false;
  for (std::size_t first = 0; first < threads_.size(); first += kWarp) {
    const std::size_t size = std::min<std::size_t>(kWarp, threads_.size() - first);
    const auto leader = std::find_if(threads_.begin() + static_cast<std::ptrdiff_t>(first),
                                     threads_.begin() + static_cast<std::ptrdiff_t>(first + size),
                                     [](const Thread& thread) { return thread.state == State::at_warp; });
    if (leader == threads_.begin() + static_cast<std::ptrdiff_t>(first + size)) continue;
    const Thread asks = *leader;
    unsigned votes = 0, there = 0;
    for (std::size_t lane = 0; lane < size; ++lane) {
      const Thread& thread = threads_[first + lane];
      if (thread.state != State::at_warp || thread.lanes != asks.lanes || !same(thread.at, asks.at)) continue;
      there |= 1U << lane;
      votes |= (thread.vote ? 1U : 0U) << lane;
    }
    if (there != asks.lanes) diverged(asks.at);
    released = true;
    for (std::size_t lane = 0; lane < size; ++lane) {
      if ((there >> lane & 1U) == 0) continue;
      threads_[first + lane].votes = votes;
      threads_[first + lane].state = State::running;
    }
  }
  return released;
}

void Grid::release_block() {
  if (at_block_ != threads_.size() || mixed_) diverged(block_at_);
  any_ = votes_;
  at_block_ = 0;
  mixed_ = votes_ = false;
  for (Thread& thread : threads_) thread.state = State::running;
}

void Grid::run_block() {
  for (Thread& thread : threads_) thread.state = State::fresh;
  started_ = ended_ = at_block_ = at_warp_ = 0;
  mixed_ = votes_ = false;
  starts_ = turns(threads_.size());
  while (started_ < threads_.size()) {
    if (idle_.empty())
      idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>(&Grid::work, fibers_.size())).get());
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    resume(fiber);
  }
  while (ended_ < threads_.size()) {
    if (!release_warps()) release_block();
    Turns turn = turns(threads_.size());
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const unsigned t = turn.next();
      if (threads_[t].state != State::running) continue;
      become(t);
      resume(thread().fiber);
    }
  }
}

void Grid::run(const dim3& grid, const dim3& block, void (*body)(const void*), const void* arguments) {
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (blocks == 0 || grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535 || threads == 0 ||
      threads > kMostThreads || block.z > 64)
    throw std::logic_error(fmt::format("a grid of ({}, {}, {}) blocks of ({}, {}, {}) threads", grid.x, grid.y, grid.z,
                                       block.x, block.y, block.z));
  order_ = kept_.value_or(static_cast<Order>(launches_++ % 3));
  threads_.assign(threads, {});
  body_ = body;
  arguments_ = arguments;
  gridDim = grid;
  blockDim = block;
  Turns turn = turns(blocks);
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const std::uint64_t index = turn.next();
    blockIdx = {static_cast<unsigned>(index % grid.x), static_cast<unsigned>(index / grid.x % grid.y),
                static_cast<unsigned>(index / grid.x / grid.y)};
    run_block();
  }
}

}  // namespace

void set_order(Order order, std::uint64_t seed) { the_grid.keep_order(order, seed); }
void vary_order(std::uint64_t seed) { the_grid.vary(seed); }

void run_grid(const dim3& grid, const dim3& block, void (*body)(const void*), const void* arguments) {
  the_grid.run(grid, block, body, arguments);
}

bool meet_block(bool vote, const std::source_location& at) { return the_grid.meet_block(vote, at); }
unsigned meet_warp(unsigned lanes, bool vote, const std::source_location& at) {
  return the_grid.meet_warp(lanes, vote, at);
}

}  // namespace echelon::on_cpu
