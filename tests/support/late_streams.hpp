// Streams of work as a card has them: what is put on a stream is done later, in the order of the stream; between
// streams only marks order it. Who asks about a mark, and who puts something, lets some of the waiting work happen, on
// streams drawn at random (ECHELON_TEST_SEED), on the thread that asks. Host code that needs a result and waits for no
// mark reads stale values in some of the runs.
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
  // A point of a stream: all that was put there before it.
  struct Mark {
    int stream = 0;
    std::uint64_t count = 0;
  };

  explicit LateStreams(int streams = 1);

  int add();  // a stream
  void put(int stream, std::function<void()> work);
  // What is put on the stream from now on begins once `ready`, which is asked again and again.
  void put_wait(int stream, std::function<bool()> ready);
  void put_wait(int stream, Mark mark);
  Mark record(int stream);
  bool passed(Mark mark);  // after some of the waiting work

  // Does what must be done first. A failed check where that takes longer than a minute: it waits for what never comes.
  void finish(Mark mark);
  void finish(int stream) { finish(record(stream)); }
  // All streams. What waits for other ranks is dropped where this happens because of an exception.
  void finish_all();

 private:
  struct Item {
    std::function<bool()> ready;  // empty: always
    std::function<void()> work;
  };
  struct Stream {
    std::deque<Item> items;
    std::uint64_t put = 0, done = 0;
  };
  void push(int stream, Item item);
  bool run_some(std::size_t most);  // of random streams; false where nothing could run
  template <class Done>
  bool finish_until(const Done& done, bool may_drop);

  std::recursive_mutex mutex_;
  HashRng random_;
  std::uint64_t draws_ = 0;
  std::deque<Stream> streams_;
};

}  // namespace echelon::test
