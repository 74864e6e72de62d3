// What exchange.codec asks of asynchronous parameter servers: coded messages both ways, with error feedback both ways.
//
// Push. A worker encodes its update, a change of weights or a gradient, plus its residual; the encoding error is the
// new residual. What all its pushes decode to, and the residual, are the sum of its updates. An update of rate 0
// changes nothing on its server, and leaves the residual as it is.
//
// Pull. A server keeps, for each worker, the copy of its weights that this worker has (served.hpp). An answer is the
// coded difference of the weights from that copy, and both sides add what it decodes to: what one answer leaves out is
// in the next difference. `lossless` codes the bits that differ (exclusive or): what no worker has changed, such as
// most rows of an embedding, is zero in both directions, and the weights are those of a run without a codec.
//
// As they are travel: all messages of a worker in the first exchange.codec_warmup_steps of its steps, answers at
// meetings, which leave all workers with the very weights of the servers, running statistics, and what a worker sends
// to the server on its own rank.
//
// Random draws, also those of answers, depend on the worker, its step and the bucket: on nothing that time decides.
//
// State: "residual/<parameter>" by worker, summed for another number of them, and thresholds by rank. The residual of a
// part that a worker serves itself, which only another number of workers or servers leaves, enters its next update
// whole; so does that of a run with one worker, which sends nothing. Host memory: the residual G; a server has k
// copies G/s.
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
    int rank = 0, ranks = 1, workers = 1;  // the first ranks push
    std::vector<ArenaRange> buckets;       // of the arenas
    std::vector<Parts> parts;              // of each, by rank
    DType dtype = DType::f32;
    std::uint64_t seed = 0;  // of the run
    std::string part = {};   // StrategyContext::part
  };
  // exchange.codec is not "none". ConfigError where codec and dtype do not go together. The parameters outlive this.
  AsyncCodec(const ExchangeConfig& config, const ParameterSet& parameters, Layout layout);

  bool lossy() const { return feedback_.lossy(); }
  // Of the longest payload of a server's part of bucket b.
  std::size_t most_bytes(int b, int server) const;
  // Bytes of the payloads of a step of all ranks, of `request`: bucket b's server; NaN where that depends on the values
  // or on the step.
  double formula_bytes(int b, const AllreduceRequest& request) const;

  // At a worker. Compute thread, before bucket b is posted: of step `step` of the run; `counts`: its rate is not 0.
  void before_push(std::size_t b, std::int64_t step, bool counts);
  // Compute thread, after bucket b was settled.
  void settled(std::size_t b);

  // The thread that drives the machine. At a worker, of its update of a server's part of b, on the host:
  std::int64_t step_of(int b) const { return feedback_.step_of(static_cast<std::size_t>(b)); }
  bool codes(int b) const { return feedback_.codes(static_cast<std::size_t>(b)); }
  std::size_t push(int b, int server, void* values, std::byte* wire);
  // Of its own part, which is not coded.
  void keep_to_itself(int b, void* values);
  // The answer, into the worker's weights of that part.
  void take(int b, int server, Payload message, void* weights);
  // At a server, of its own part. What a worker pushed:
  void decode(int b, Payload message, void* values);
  // The answer to the push of this step of the worker, on the host. `copy`: the weights that this worker has, which
  // become those that it will have.
  std::size_t answer(int b, int worker, std::int64_t step, const void* weights, void* copy, std::byte* wire);

  // Of a run with one worker: adds what a checkpoint brought of b's residual to values on the device.
  void release(std::size_t b, Device& device, void* values);
  // Compute thread. Of messages that this rank encoded since the last call; the residual is that of its pushes.
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
  ArenaRange place(int b, int server) const;
  // Into values: what leads from `copy` to them.
  void put_difference(ArenaRange range, std::byte* values, const std::byte* copy) const;
  void follow(ArenaRange range, void* weights, const std::byte* change) const;
  std::byte* scratch(ElemRange range);
  void count(ServerForm& form);

  Layout layout_;
  ErrorFeedback feedback_;
  KindRuns runs_;
  std::vector<Push> pushes_;                                            // by bucket
  std::map<std::pair<int, int>, std::unique_ptr<ServerForm>> answers_;  // by bucket and worker; of the own parts
  std::vector<std::byte> scratch_;
  std::mutex mutex_;  // of the tally
};

}  // namespace echelon::inline exchange
