// Messages of bytes between ranks. A transport has no notion of tensors, plans or codecs: those are above it.
//
// Bodies: mpi/ (the only place with <mpi.h>), local/ (ranks as threads of one process, counts everything), virtual/
// (all ranks on one thread and a virtual clock); around any other disturbed.hpp (faults), checked.hpp (checksums) and
// shaped.hpp (rates and delays of cards).
//
// Threads: one thread of a rank, its engine's, makes every call between `start` and `stop` (MPI_THREAD_SERIALIZED).
// Messages between the same two ranks with the same tag arrive in the order sent; a receive of fewer bytes than the
// message is an EnvironmentError. Buffers must stay until the request is done. No other delivery order is promised, nor
// that a send completes before its receive is posted. Errors of the network are EnvironmentErrors, thrown by the call
// that meets them.
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

// Identifies an operation under way; valid until `test` has returned its completion, or `cancel`.
struct Request {
  std::int64_t id = -1;
  bool valid() const { return id >= 0; }
};

// Of a receive the actual sender and length, of a send those of the call.
struct Completion {
  int peer = -1;
  std::size_t bytes = 0;
};

// What this rank has sent and received since the transport was made. Library collectives count as `library_bytes`:
// their messages cannot be observed.
struct WireCounters {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t library_calls = 0;
  std::uint64_t library_bytes = 0;  // payload handed to the library

  WireCounters& operator+=(const WireCounters& other);
};

// Bytes a second through a rank's network card, both ways together: the busiest tenth of a second, and the mean.
struct CardRates {
  double peak = 0, mean = 0;
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
  // Likewise of machines, whose cores, GPUs and disks ranks share: other than hosts only where hosts are groups of
  // ranks (with_hosts).
  virtual const std::vector<int>& machines() const { return hosts(); }
  // What the cards of hosts are slowed down to (shaped.hpp); null: to nothing.
  virtual const NetworkShape* shape() const { return nullptr; }
  // The clock of all waits and measurements on this transport: of the host, or virtual.
  virtual const Clock& clock() const { return host_clock(); }
  // The earliest time at which a request may complete without an action of another rank (a delayed message); infinity
  // where there is none.
  virtual double wakes_at_s() const { return std::numeric_limits<double>::infinity(); }

  // Starts a message to `peer` in [0, size), and returns; `tag` >= 0.
  virtual Request isend(int peer, int tag, const void* data, std::size_t bytes) = 0;
  virtual Request irecv(int peer, int tag, void* data, std::size_t bytes) = 0;  // peer may be kAnySource
  // Makes progress; where the request is done, frees it (request.valid() is false then) and returns its completion.
  // Never blocks.
  virtual std::optional<Completion> test(Request& request) = 0;
  // Abandons an operation, after a failure or at the end. `local` does not touch its buffer afterwards; MPI may, where
  // the message was partly transferred, and a library call cannot be cancelled.
  virtual void cancel(Request& request) = 0;
  // Receives that were abandoned while their message was on its way, so that their memory may still be written to; any
  // later `test` may end them.
  virtual std::size_t abandoned() const { return 0; }

  // The library's own all-reduce (sum, in place). Calls on all ranks must be in one order.
  virtual bool has_library_allreduce() const = 0;
  virtual Request iallreduce(void* data, std::size_t elems, DType dtype) = 0;

  // A transport over the ranks that give the same colour, ordered by key then rank; collective, blocking.
  virtual std::unique_ptr<Transport> split(int color, int key) = 0;

  // A transport over the same ranks whose hosts are these, by rank, so that ranks of one machine stand for several
  // hosts; collective, blocking. EnvironmentError where ranks of one host are on several machines. `hosts` is the same
  // on all ranks.
  virtual std::unique_ptr<Transport> with_hosts(const std::vector<int>& hosts);

  // Memory that all ranks share, of which `bytes` are this rank's; collective, blocking. Null on every rank where ranks
  // are on several hosts, or where the system provides none.
  virtual std::shared_ptr<SharedBlock> share(std::size_t bytes) { return (void)bytes, nullptr; }

  // Memory of one channel (a tag) that all ranks of this rank's host share, which plans sum in. Never blocks: null
  // until all of them have asked for it, `missing` being one that has not, or -1; afterwards the same memory in every
  // call. EnvironmentError where the system provides none. Only where `shares_channels`.
  virtual bool shares_channels() const { return false; }
  virtual SharedChannel* shared_channel(int tag, int& missing);

  // Whether a message that arrives damaged is an error (checked.hpp).
  virtual bool checks_messages() const { return false; }

  virtual WireCounters counters() const = 0;  // any thread
  // Bytes of the messages to each rank; any thread. Empty where they are not counted.
  virtual std::vector<double> bytes_to_peers() const { return {}; }
  // Since the last restart_card_rates. Messages count when their send starts and when their receive ends. Any thread;
  // zeros where they are not measured.
  virtual CardRates card_rates() const { return {}; }
  virtual void restart_card_rates() {}

  // Ends every rank of the world with this exit code, at once.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace echelon::inline comm
