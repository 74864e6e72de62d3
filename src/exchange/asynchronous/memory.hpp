// The messages of an asynchronous parameter server, in host memory: values of the arenas' dtype, f32 or f64, as they
// are or coded (codec.hpp). What updates do to the weights is served.hpp, in host or device memory.
//
// Host memory of a rank, G bytes of weights, k workers, s servers: on a worker the weights that were pulled last (G),
// its updates as messages (G) and answers on their way (G); on a server a message of each worker (k G / s), and what
// served.hpp has. A codec takes another G of messages on a worker, and what codec.hpp says.
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
    std::vector<ArenaRange> buckets;  // of the arenas
    std::vector<Parts> parts;         // of each, by rank
    DType dtype = DType::f32;
  };
  // `served`: null on a rank that serves nothing; `codec`: null where nothing is coded. They and the parameters outlive
  // this.
  AsyncBuffers(Layout layout, const ParameterSet& parameters, AsyncServed* served, AsyncCodec* codec = nullptr);

  // Compute thread, before the machine runs: everybody's first weights, of the whole arena.
  void begin(const void* weights);
  // What a worker pushes: share * (weights - pulled). Where servers apply the optimiser, instead of that the gradients,
  // but of running statistics.
  struct Update {
    const void* weights = nullptr;    // of the bucket
    const void* gradients = nullptr;  // likewise; null: changes of weights are pushed
    double share = 1;
    double rate = 0;        // the learning rate times `share`
    std::int64_t step = 0;  // of the run
  };
  // Compute thread, before bucket b is posted.
  void set_update(std::size_t b, const Update& update);
  // Compute thread, after bucket b was settled: its weights as they were pulled.
  const void* pulled(std::size_t b) const { return at(pulled_, layout_.buckets[b].begin); }

  // The range in the arena of a server's part of a bucket.
  ArenaRange place(int b, int server) const {
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
  // Flags of a header: whether the payload is coded, and the low bits of the worker's step, by which answers are coded.
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
  // Of a message that came; a failed check where this rank has no codec for it.
  bool is_coded(const AsyncHeader& header) const;

  Layout layout_;
  KindRuns runs_;
  AsyncServed* served_;
  AsyncCodec* codec_;
  Arena pulled_;               // of the whole arena
  std::vector<double> rates_;  // by bucket, of the update that is pushed
  // Made once: the compute thread and the one that drives use different buckets of the same maps.
  Messages updates_, arriving_, asked_;  // to a server; of a server's answer; of and to a worker
  Messages coded_;                       // to a server
  std::vector<std::byte> decoded_;       // of a worker
};

}  // namespace echelon::inline exchange
