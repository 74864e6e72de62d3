// SPDX-License-Identifier: Apache-2.0
// Streams as queues: work runs in order, either at once or only when somebody waits for it (Settings::late).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "tests/cuda_calls/standin/call.hpp"

namespace echelon::calls {

struct Work {
  std::function<void()> run;  // under the lock
  Stream* other = nullptr;    // its work up to `until` runs first
  std::uint64_t until = 0;
};

struct Stream : Object {
  std::deque<Work> pending;
  std::uint64_t enqueued = 0, done = 0;
  bool capturing = false, invalid = false;
  std::vector<Work> captured;
};

struct EventObject : Object {
  Stream* stream = nullptr;  // null: never recorded
  std::uint64_t at = 0;
  bool timing = true;
};

struct Graph : Object {
  std::vector<Work> works;
};

inline constexpr const char *kStream = "stream", *kEvent = "event", *kGraph = "graph", *kGraphExec = "executable graph";

// The stream of a call that enqueues work; null, and a broken rule, if it is no stream or the default stream, which is
// ordered with all others (CUDA C++ Programming Guide, "Default Stream").
Stream* stream_of(const Call& call, cudaStream_t handle);

// Enqueues work in the order of the stream, or into its graph while it is captured.
void enqueue(Stream& stream, Work work);
// Enqueues work on these ranges, which must still exist when the stream reaches it, in a graph or not.
void enqueue_on(const Call& call, Stream& stream, std::vector<Range> ranges, std::function<void()> run = {});
void run_until(Stream& stream, std::uint64_t until);
// Runs all work of a device.
void run_device(int device);

// Returns false, with a broken rule and a failed capture, if this thread captures a stream: calls that wait, or that
// allocate or free memory, are not permitted then (CUDA Runtime API, cudaThreadExchangeStreamCaptureMode; Programming
// Guide, "Prohibited and Unhandled Operations").
bool outside_capture(const Call& call);

}  // namespace echelon::calls
