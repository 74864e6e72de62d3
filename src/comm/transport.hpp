// SPDX-License-Identifier: Apache-2.0
// Messages of bytes between ranks. A transport knows no tensors, plans or codecs; those are layers above it.
//
// Implementations: mpi/ (the only place with <mpi.h>), local/ (ranks are threads of one process; counts everything) and
// virtual/ (all ranks on one thread with a virtual clock). disturbed.hpp (faults), checked.hpp (checksums) and
// shaped.hpp (rates and delays of cards) wrap any other transport.
//
// Threads: one thread of a rank, its engine's, makes every call between `start` and `stop` (MPI_THREAD_SERIALIZED).
// Messages between the same two ranks with the same tag arrive in the order sent; a receive of fewer bytes than the
// message is an EnvironmentError. Buffers must stay valid until the request is done. No other delivery order is
// promised, nor that a send completes before its receive is posted. Network errors are EnvironmentErrors, thrown by the
// call that meets them.
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

class SharedChannel;
struct NetworkShape;

inline constexpr int kAnySource = -1;

// Identifies an operation in flight; valid until `test` has returned its completion, or until `cancel`.
struct Request {
  std::int64_t id = -1;
  bool valid() const { return id >= 0; }
};

// For a receive: the actual sender and length. For a send: the arguments of the call.
struct Completion {
  int peer = -1;
  std::size_t bytes = 0;
};

// Messages that this rank has sent and received since the transport was made. Library collectives count as
// `library_bytes`, because their messages cannot be observed.
struct WireCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t library_calls = 0;
  std::uint64_t library_bytes = 0;   // payload handed to the library
  std::uint64_t answered_bytes = 0;  // part of bytes_sent: servers to workers; only strategies know it

  WireCounters& operator+=(const WireCounters& other);
};

// Bytes per second through a rank's network card, both directions together: the busiest tenth of a second, and the
// mean.
struct CardRates {
  double peak = 0, mean = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string name() const = 0;  // "mpi (Open MPI 4.1.4)", "local"
  // For each rank the index of its host, counted from 0 in the order of first ranks; and the name of each host.
  virtual const std::vector<int>& hosts() const = 0;
  virtual const std::vector<std::string>& host_names() const = 0;
  // For each rank the index of its machine, whose cores, GPUs and disks ranks share. Machines differ from hosts only if
  // hosts are groups of ranks (with_hosts).
  virtual const std::vector<int>& machines() const { return hosts(); }
  // The network that messages are slowed down to (shaped.hpp); null: they are not slowed down.
  virtual const NetworkShape* shape() const { return nullptr; }
  // The clock of all waits and measurements on this transport: the host's, or a virtual one.
  virtual const Clock& clock() const { return host_clock(); }
  // The earliest time at which a request may complete without an action of another rank (a delayed message); infinity
  // if there is none.
  virtual double wakes_at_s() const { return std::numeric_limits<double>::infinity(); }

  // Starts a message to `peer` in [0, size) and returns; `tag` >= 0.
  virtual Request isend(int peer, int tag, const void* data, std::size_t bytes) = 0;
  virtual Request irecv(int peer, int tag, void* data, std::size_t bytes) = 0;  // peer may be kAnySource
  // Makes progress. If the request is done, frees it (request.valid() is then false) and returns its completion. Never
  // blocks.
  virtual std::optional<Completion> test(Request& request) = 0;
  // Abandons an operation, after a failure or at the end. `local` does not touch its buffer afterwards; MPI may, if the
  // message was partly transferred. A library call cannot be cancelled.
  virtual void cancel(Request& request) = 0;
  // Number of receives that were abandoned while their message was arriving, so that their memory may still be written;
  // any later `test` may end them.
  virtual std::size_t abandoned() const { return 0; }

  // The library's own all-reduce (sum, in place). All ranks must make these calls in the same order.
  virtual bool has_library_allreduce() const = 0;
  virtual Request iallreduce(void* data, std::size_t elems, DType dtype) = 0;

  // Returns a transport over the ranks that give the same colour, ordered by key, then rank; collective, blocking.
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  // Returns a transport over the same ranks with these hosts, by rank, so that ranks of one machine act as several
  // hosts; collective, blocking. EnvironmentError if ranks of one host are on several machines. `hosts` is the same on
  // all ranks.
  virtual std::unique_ptr<Transport> with_hosts(const std::vector<int>& hosts);

  // Memory that all ranks share; `bytes` is the size of this rank's part. Collective, blocking. Null on every rank if
  // ranks are on several hosts, or if the system provides no such memory.
  virtual std::shared_ptr<SharedBlock> share(std::size_t bytes) { return (void)bytes, nullptr; }

  // The memory of one channel (a tag) that all ranks of this rank's host share, in which plans sum. Never blocks.
  // Returns null until all of them have asked for it, and sets `missing` to a rank that has not, or to -1; afterwards
  // every call returns the same memory. EnvironmentError if the system provides none. Only valid if `shares_channels`.
  virtual bool shares_channels() const { return false; }
  virtual SharedChannel* shared_channel(int tag, int& missing);

  // Whether a message that arrives damaged is an error (checked.hpp).
  virtual bool checks_messages() const { return false; }

  virtual WireCounters counters() const = 0;  // any thread
  // Bytes of the messages to each rank; any thread. Empty if they are not counted.
  virtual std::vector<double> bytes_to_peers() const { return {}; }
  // Rates since the last restart_card_rates. Messages count when their send starts and when their receive ends. Any
  // thread; zeros if they are not measured.
  virtual CardRates card_rates() const { return {}; }
  virtual void restart_card_rates() {}

  // Ends every rank of the world with this exit code, at once.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace echelon::inline comm
