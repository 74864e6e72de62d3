// The messages and the arithmetic of an asynchronous parameter server, in host memory: uncoded values of the arenas'
// dtype, f32 or f64.
//
// Host memory of a rank, G bytes of weights, k workers, s servers: the weights that were pulled last (G), its updates
// as messages (G) and answers on their way (G); on a server the weights that it serves (G / s), a message of each
// worker (k G / s) and, with soft > 1, what is added up (G / s).
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "device/parameter.hpp"
#include "exchange/asynchronous/protocol.hpp"

namespace echelon::inline exchange {

class AsyncBuffers final : public AsyncMemory {
 public:
  // `buckets`: ranges of the arenas of `elems` values, and `parts` of each by rank.
  AsyncBuffers(int rank, std::vector<ArenaRange> buckets, std::vector<Parts> parts, std::int64_t elems, DType dtype,
               bool adds_up);

  // Compute thread, before the machine runs: everybody's first weights, of the whole arena.
  void begin(const void* weights);
  // Compute thread, before bucket b is posted: the update scale * (weights - pulled), of `weights` of the bucket.
  void set_update(std::size_t b, const void* weights, double scale);
  // Compute thread, after bucket b was settled: its weights as they were pulled.
  const void* pulled(std::size_t b) const { return at(pulled_, buckets_[b].begin); }

  // The engine at rest: the range in the arena of a server's part of a bucket; this rank's part as it serves it, with
  // all that was added up.
  ArenaRange place(int b, int server) const;
  const void* served(int b) {
    if (!sum_.empty()) flush(b);
    return at(served_, place(b, rank_).begin);
  }

  Message push(int b, int server) override;
  Room answer_room(int b, int server) override;
  void take(int b, int server, const AsyncHeader& header, Payload weights) override;
  Room push_room(int b, int worker) override;
  void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) override;
  void flush(int b) override;
  Message answer(int b, int worker) override;

 private:
  using Arena = std::vector<std::byte>;
  using Messages = std::map<std::pair<int, int>, std::vector<std::byte>>;  // by bucket and rank

  std::size_t bytes_of(std::int64_t elems) const { return static_cast<std::size_t>(elems) * size_of(dtype_); }
  std::byte* at(Arena& arena, std::int64_t elem) { return arena.data() + bytes_of(elem); }
  const std::byte* at(const Arena& arena, std::int64_t elem) const { return arena.data() + bytes_of(elem); }
  ElemRange part(int b, int server) const {
    return parts_[static_cast<std::size_t>(b)].at(static_cast<std::size_t>(server));
  }
  void add(void* to, const void* from, double factor, std::int64_t elems) const;

  int rank_;
  std::vector<ArenaRange> buckets_;
  std::vector<Parts> parts_;
  DType dtype_;
  Arena pulled_, served_, sum_;  // of the whole arena; of the last two the own parts are used
  // Made once: the compute thread and the one that drives use different buckets of the same maps.
  Messages updates_, arriving_, asked_;  // to a server; of a server's answer; of and to a worker
};

}  // namespace echelon::inline exchange
