// SPDX-License-Identifier: Apache-2.0
// Streams of work as a card has them: work that is put on a stream is done later, in the stream's order; only marks
// order work between streams. Asking about a mark, or putting work, runs some of the waiting work on randomly drawn
// streams (ECHELON_TEST_SEED), on the calling thread. Host code that needs a result but waits for no mark reads stale
// values in some runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "base/hash_rng.hpp"

namespace echelon::test {

class LateStreams {
 public:
  // A point of a stream, behind all that was put there before it.
  struct Mark {
    int stream = 0;
    std::uint64_t count = 0;
  };

  explicit LateStreams(int streams = 1);

  int add();  // returns the number of a new stream
  void put(int stream, std::function<void()> work);
  // Work put on the stream from now on begins once `ready` holds, which is polled.
  void put_wait(int stream, std::function<bool()> ready);
  void put_wait(int stream, Mark mark);
  Mark record(int stream);
  bool passed(Mark mark);  // runs some of the waiting work first

  // Does all work up to the mark. Fails a check after a minute, because then the work waits for what never comes.
  void finish(Mark mark);
  void finish(int stream) { finish(record(stream)); }
  // Finishes all streams. During the unwinding of an exception it drops work that waits for other ranks.
  void finish_all();

 private:
  struct Item {
    std::function<bool()> ready;  // empty: always ready
    std::function<void()> work;
  };
  struct Stream {
    std::deque<Item> items;
    std::uint64_t put = 0, done = 0;
  };
  void push(int stream, Item item);
  bool run_some(std::size_t most);  // on random streams; false where nothing could run
  template <class Done>
  bool finish_until(const Done& done, bool may_drop);

  std::recursive_mutex mutex_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  std::deque<Stream> streams_;
};

}  // namespace echelon::test
