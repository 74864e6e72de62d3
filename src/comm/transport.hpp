// Bytes between ranks. It deals with ranks and bytes only; what they mean is for the layers above.
//
// Bodies: mpi/ (the only place with <mpi.h>), local/ (ranks as threads of one process, counts everything), virtual/
// (all ranks on one thread and a virtual clock), and disturbed.hpp (delays, drops and stops around any other).
//
// Threads: one thread of a rank, its engine's, makes every call between `start` and `stop` (MPI_THREAD_SERIALIZED).
// Messages between the same two ranks with the same tag arrive in the order sent; a receive of fewer bytes than the
// message is an EnvironmentError. Buffers must stay until the request is done. An any-source receive is how servers
// listen: `Completion` then says who sent and how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/dtype.hpp"
#include "comm/shared_block.hpp"

namespace echelon::inline comm {

inline constexpr int kAnySource = -1;

// Names an operation under way; valid until `test` has returned that it is done.
struct Request {
  std::int64_t id = -1;
  bool valid() const { return id >= 0; }
};

struct Completion {
  int peer = -1;
  std::size_t bytes = 0;
};

// What this rank has put on the wire and taken off it. Library collectives count as `library_bytes`: their messages are
// the library's own business.
struct WireCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t library_calls = 0;
  std::uint64_t library_bytes = 0;  // payload handed to the library

  WireCounters& operator+=(const WireCounters& other);
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "mpi (Open MPI 4.1.4)", "local"
  // For each rank the index of its host, from 0, in order of first rank; and the name of each host.
  virtual const std::vector<int>& hosts() const = 0;
  virtual const std::vector<std::string>& host_names() const = 0;
  // The time by which whoever uses this transport waits and measures.
  virtual const Clock& clock() const { return host_clock(); }
  // The earliest time at which a request may complete though nobody else moves; infinity where there is none.
  virtual double wakes_at_s() const { return std::numeric_limits<double>::infinity(); }

  virtual Request isend(int peer, int tag, const void* data, std::size_t bytes) = 0;
  virtual Request irecv(int peer, int tag, void* data, std::size_t bytes) = 0;  // peer may be kAnySource
  // Makes progress; where the request is done, frees it and says by whom. Never blocks.
  virtual std::optional<Completion> test(Request& request) = 0;
  // Gives an operation up, after a failure or at the end. `local` does not touch its buffer afterwards; MPI cannot
  // promise that for a message half through.
  virtual void cancel(Request& request) = 0;

  // The library's own all-reduce (sum, in place). Calls on all ranks must be in one order.
  virtual bool has_library_allreduce() const = 0;
  virtual Request iallreduce(void* data, std::size_t elems, DType dtype) = 0;

  // A transport over the ranks that give the same colour, ordered by key then rank; collective, blocking. Model groups
  // and servers get theirs here.
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  // Memory that all ranks see, `bytes` of it this rank's; collective, blocking. Null on every rank where they lie on
  // several hosts, or where the system gives none.
  virtual std::shared_ptr<SharedBlock> share(std::size_t bytes) { return (void)bytes, nullptr; }

  virtual WireCounters counters() const = 0;  // any thread

  // Ends every rank of the world with this exit code, now.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace echelon::inline comm
