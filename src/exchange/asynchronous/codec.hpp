// SPDX-License-Identifier: Apache-2.0
// Applies exchange.codec to asynchronous parameter servers: messages are coded in both directions, each with error
// feedback.
//
// Push. A worker encodes its update, a change of weights or a gradient, plus its residual; the encoding error is the
// new residual. All its decoded pushes and its residual together are the sum of its updates. An update of rate 0
// changes nothing on its server and leaves the residual unchanged.
//
// Pull. A server keeps a copy of the weights that each worker has (served.hpp). An answer is the coded difference
// between the weights and that copy, and both sides add the decoded message: what one answer leaves out is part of the
// next difference. `lossless` codes the differing bits (exclusive or): values that no worker has changed, such as most
// rows of an embedding, are zeros in both directions, and the weights are those of a run without a codec.
//
// Never coded are: all messages of a worker in the first exchange.codec_warmup_steps of its steps; answers at meetings,
// after which all workers have exactly the servers' weights; running statistics; and messages between a worker and the
// server on its rank.
//
// Random draws, including those of answers, depend only on the worker, its step and the bucket, never on timing.
//
// State: "residual/<parameter>" per worker (another number of workers reads the sum, divided), and thresholds per rank.
// If the number of workers or servers has changed, a worker may have a residual for a part that it serves itself: it
// enters its next update whole. So does that of a run with one worker, which sends nothing. Host memory, with G bytes
// of weights, k workers and s servers: the residual takes G, and each server's copies take k G/s.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exchange/kind_runs.hpp"
#include "exchange/kit/error_feedback.hpp"
#include "exchange/server/form.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class AsyncCodec {
 public:
  using Payload = std::span<const std::byte>;

  struct Layout {
    int rank = 0, ranks = 1, workers = 1;  // the first `workers` ranks push
    std::vector<ArenaRange> buckets;       // ranges of the arenas
    std::vector<Parts> parts;              // by bucket: the part of each rank
    DType dtype = DType::f32;
    std::uint64_t seed = 0;  // of the run
    std::string part = {};   // StrategyContext::part
  };
  // exchange.codec must not be "none". The parameters must outlive this object. Throws ConfigError if codec and dtype
  // cannot be combined.
  AsyncCodec(const ExchangeConfig& config, const ParameterSet& parameters, Layout layout);

  bool lossy() const { return feedback_.lossy(); }
  // The length of the longest payload for a server's part of bucket b.
  std::size_t most_bytes(int b, int server) const;
  // The bytes of the payloads that all ranks send for bucket b in a step; `request` gives its servers. NaN if that
  // depends on the values or on the step.
  double formula_bytes(int b, const AllreduceRequest& request) const;

  // On a worker: the compute thread calls it before bucket b is posted. `step` is that of the run; `counts` is false if
  // the update has rate 0.
  void before_push(std::size_t b, std::int64_t step, bool counts);
  // On a worker: the compute thread calls it after bucket b was settled.
  void settled(std::size_t b);

  // On a worker, for the thread that drives the machine. `push` encodes the update of a server's part of b, on the
  // host, and returns its bytes.
  std::int64_t step_of(int b) const { return feedback_.step_of(static_cast<std::size_t>(b)); }
  bool codes(int b) const { return feedback_.codes(static_cast<std::size_t>(b)); }
  std::size_t push(int b, int server, void* values, std::byte* wire);
  // Adds a loaded residual to the update of the worker's own part, which is not coded.
  void keep_to_itself(int b, void* values);
  // Adds a decoded answer to the worker's weights of that part.
  void take(int b, int server, Payload message, void* weights);
  // On a server: decodes a worker's push of its own part to `values`.
  void decode(int b, Payload message, void* values);
  // On a server: encodes the answer to the worker's push of this step, from weights on the host. `copy` holds the
  // weights that the worker has, and is updated to those that it will have. Returns the bytes.
  std::size_t answer(int b, int worker, std::int64_t step, const void* weights, void* copy, std::byte* wire);

  // In a run with one worker: adds b's residual, if a checkpoint brought it, to values on the device.
  void release(std::size_t b, Device& device, void* values);
  // The record of messages that this rank encoded since the last call, with the residual of its pushes. Compute thread.
  CodecRecord record();
  void visit_state(StateVisitor& visitor);

 private:
  struct Push {
    std::unique_ptr<ServerForm> form;
    bool counts = true;
  };

  ElemRange part(int b, int server) const {
    return layout_.parts[static_cast<std::size_t>(b)][static_cast<std::size_t>(server)];
  }
  ArenaRange range_at(int b, int server) const;
  // Replaces `values` by their difference from `copy`; `follow` adds such a difference to weights.
  void put_difference(ArenaRange range, std::byte* values, const std::byte* copy) const;
  void follow(ArenaRange range, void* weights, const std::byte* change) const;
  std::byte* scratch(ElemRange range);
  void count(ServerForm& form);

  Layout layout_;
  ErrorFeedback feedback_;
  KindRuns runs_;
  std::vector<Push> pushes_;                                            // by bucket
  std::map<std::pair<int, int>, std::unique_ptr<ServerForm>> answers_;  // by bucket and worker; for the own parts
  std::vector<std::byte> scratch_;
  std::mutex mutex_;  // protects the tally
};

}  // namespace echelon::inline exchange
