// SPDX-License-Identifier: Apache-2.0
// The memory of a rank of an asynchronous parameter server whose weights are integers. It makes messages, checks those
// that arrive, and tells the observer. It overwrites buffers as soon as nobody may read them any more.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tests/support/async_observer.hpp"

namespace echelon::test {

class AsyncNumbers final : public AsyncMemory {
 public:
  // `parts` is indexed by bucket and rank; it and the observer must outlive this object.
  AsyncNumbers(const std::vector<Parts>& parts, int rank, AsyncObserver& observer);

  // The host calls pushes() before it posts its next push of b, and settled() when it is told that b is settled.
  void pushes(int b);
  void settled(int b);

  Message push(int b, int server) override;
  Room answer_room(int b, int server) override { return room(answers_[{b, server}], b, server); }
  void take(int b, int server, const AsyncHeader& header, Payload weights) override;
  Room push_room(int b, int worker) override;
  void apply(int b, int worker, const AsyncUpdate& update, const AsyncHeader& header, Payload payload) override;
  void flush(int b) override { observer_.flushed(b, rank_); }
  Message answer(int b, int worker, const AsyncHeader& asked) override;

 private:
  using Key = std::pair<int, int>;  // bucket, and server or worker
  struct Buffer {
    std::vector<std::byte> bytes;
    bool posted = false;
  };

  Room room(Buffer& buffer, int b, int server);
  ElemRange part(int b, int server) const {
    return parts_[static_cast<std::size_t>(b)][static_cast<std::size_t>(server)];
  }

  const std::vector<Parts>& parts_;
  int rank_;
  AsyncObserver& observer_;
  std::vector<std::int64_t> pushes_;  // pushes so far, by bucket
  std::map<Key, Buffer> updates_, answers_;
  std::map<Key, Buffer> served_;  // one buffer per worker and piece, as the contract permits
};

}  // namespace echelon::test
