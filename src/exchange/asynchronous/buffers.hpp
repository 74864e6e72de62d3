// SPDX-License-Identifier: Apache-2.0
// The messages of an asynchronous parameter server, in host memory: values of the arenas' dtype, f32 or f64, plain or
// coded (codec.hpp). served.hpp applies updates to weights, in host or device memory.
//
// Host memory of a rank, with G bytes of weights, k workers and s servers: a worker needs 3 G, for the weights that it
// pulled last, its updates as messages, and arriving answers; a server needs one message per worker (k G / s) and the
// memory of served.hpp. A codec adds G for coded messages on a worker, and the memory of codec.hpp.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "device/parameter.hpp"
#include "exchange/asynchronous/codec.hpp"
#include "exchange/asynchronous/protocol.hpp"
#include "exchange/asynchronous/served.hpp"

namespace echelon::inline exchange {

class AsyncBuffers final : public AsyncMemory {
 public:
  struct Layout {
    int rank = 0, workers = 1;
    std::vector<ArenaRange> buckets;  // ranges of the arenas
    std::vector<Parts> parts;         // by bucket: the part of each rank
    DType dtype = DType::f32;
  };
  // `served` is null on a rank that serves nothing, `codec` is null without a codec. They and the parameters must
  // outlive this object.
  AsyncBuffers(Layout layout, const ParameterSet& parameters, AsyncServed* served, AsyncCodec* codec = nullptr);

  // Sets the first weights of all ranks, given as a whole arena. Compute thread, before the machine runs.
  void begin(const void* weights);
  // A worker pushes share * (weights - pulled). If servers apply the optimiser, it pushes gradients instead, except for
  // running statistics.
  struct Update {
    const void* weights = nullptr;    // of the bucket
    const void* gradients = nullptr;  // of the bucket; null: changes of weights are pushed
    double share = 1;
    double rate = 0;        // the learning rate times `share`
    std::int64_t step = 0;  // of the run
  };
  // Compute thread, before bucket b is posted.
  void set_update(std::size_t b, const Update& update);
  // The pulled weights of bucket b. Compute thread, after the bucket was settled.
  const void* pulled(std::size_t b) const { return at(pulled_, layout_.buckets[b].begin); }

  // The range of a server's part of a bucket, in the arena.
  ArenaRange range_at(int b, int server) const {
    const std::int64_t begin = layout_.buckets[static_cast<std::size_t>(b)].begin;
    return {begin + part(b, server).begin, begin + part(b, server).end};
  }

  Message push(int b, int server) override;
  Room answer_room(int b, int server) override;
  void take(int b, int server, const AsyncHeader& header, Payload weights) override;
  Room push_room(int b, int worker) override;
  void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) override;
  void flush(int b) override { served_->flush(b); }
  Message answer(int b, int worker, const AsyncHeader& asked) override;

 private:
  // Flags of a header: bit 0 means a coded payload; the other bits are the low bits of the worker's step, from which
  // the draws of a coded answer are derived.
  static constexpr std::uint32_t kCoded = 1;
  static std::uint32_t coded_in(std::int64_t step) { return kCoded | static_cast<std::uint32_t>(step) << 1; }
  using Arena = std::vector<std::byte>;
  using Messages = std::map<std::pair<int, int>, std::vector<std::byte>>;  // by bucket and rank

  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(layout_.dtype); }
  std::byte* at(Arena& arena, std::int64_t elem) { return arena.data() + bytes_of(elem); }
  const std::byte* at(const Arena& arena, std::int64_t elem) const { return arena.data() + bytes_of(elem); }
  ElemRange part(int b, int server) const {
    return layout_.parts[static_cast<std::size_t>(b)].at(static_cast<std::size_t>(server));
  }
  bool works() const { return layout_.rank < layout_.workers; }
  std::size_t longest(int b, int server) const;
  // Whether a received message is coded. A check fails if it is and this rank has no codec.
  bool is_coded(const AsyncHeader& header) const;

  Layout layout_;
  KindRuns runs_;
  AsyncServed* served_;
  AsyncCodec* codec_;
  Arena pulled_;               // the weights pulled last, a whole arena
  std::vector<double> rates_;  // by bucket, of the update that is being pushed
  // The maps are filled by the constructor: the compute thread and the driving thread use different buckets of them.
  Messages updates_, arriving_, asked_;  // pushes to a server; its answers; a worker's push and its answer
  Messages coded_;                       // coded pushes to a server
  std::vector<std::byte> decoded_;       // the decoded push of a worker
};

}  // namespace echelon::inline exchange
