// SPDX-License-Identifier: Apache-2.0
// Mailboxes, library calls and splits of a local world. Every member function may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dtype.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

enum class OpState : int { free, pending, done, truncated, mismatched };

// One operation in flight. Written under its mailbox's lock; `state` is published last.
struct LocalOp {
  std::atomic<OpState> state = OpState::free;
  bool sending = false, library = false;
  int owner = 0;  // rank that made the call
  int box = 0;    // rank whose mailbox holds it
  int peer = 0;   // receive: the requested source, afterwards the actual one
  int tag = 0;
  const void* src = nullptr;
  void* dst = nullptr;
  std::size_t bytes = 0;  // receive: capacity, afterwards the received bytes
};

// The reason why a world was ended; shared with the worlds split from it.
struct WorldEnd {
  std::atomic<bool> ended = false;
  mutable std::mutex mutex;
  std::string why;

  void check() const;  // throws EnvironmentError with `why` once ended
};

class LocalWorld {
 public:
  LocalWorld(int ranks, const std::vector<int>& hosts, std::shared_ptr<WorldEnd> end);
  // A world whose hosts are groups of ranks of one machine.
  LocalWorld(const std::vector<int>& hosts, const LocalWorld& whole);

  int ranks() const { return static_cast<int>(boxes_.size()); }
  const std::vector<int>& hosts() const { return hosts_; }
  const std::vector<std::string>& host_names() const { return host_names_; }
  const std::vector<int>& machines() const { return machines_; }

  // Match `op` with the first waiting counterpart in its mailbox and copy the bytes, or queue it. `op` must stay valid
  // until its state is final or it was withdrawn.
  void send(LocalOp& op);
  void receive(LocalOp& op);
  // Takes part in the `call`-th library all-reduce of this rank; the last rank to call computes the sum, in rank order.
  void reduce(LocalOp& op, std::int64_t call, std::size_t elems, DType dtype);
  void withdraw(LocalOp& op);
  // Blocks until all ranks have made their `call`-th split; throws if the world ends meanwhile. `hosts` is given for
  // all ranks, for a split in which they all stay together (Transport::with_hosts).
  std::unique_ptr<Transport> split(int rank, std::int64_t call, int color, int key, const std::vector<int>& hosts = {});

  // The same for the `call`-th block of shared memory; returns null, without waiting, if ranks are on several hosts.
  std::shared_ptr<SharedBlock> share(int rank, std::int64_t call, std::size_t bytes);

  // The memory that the channels of this tag share, over all ranks.
  std::shared_ptr<SharedBlock> channel_block(int tag);

  void end(const std::string& why);
  void check() const { end_->check(); }

 private:
  struct Queue {
    std::vector<LocalOp*> sends, receives;  // in the order posted
  };
  struct Mailbox {
    std::mutex mutex;
    std::unordered_map<int, Queue> by_tag;
  };
  struct Reduction {
    std::vector<LocalOp*> ops;  // by rank
    std::vector<std::size_t> elems;
    std::vector<DType> dtypes;
    int arrived = 0;
  };
  struct Split {
    std::vector<std::pair<int, int>> colours_and_keys;  // by rank
    std::vector<int> hosts;                             // empty: unchanged
    std::vector<std::unique_ptr<Transport>> parts;
    int arrived = 0, taken = 0;
  };
  struct SharedAllocation {
    std::vector<std::size_t> bytes;  // by rank
    std::shared_ptr<SharedBlock> block;
    int arrived = 0, taken = 0;
  };
  static void deliver(LocalOp& from, LocalOp& to);
  void finish(Reduction& reduction);
  void divide(Split& split);

  std::deque<Mailbox> boxes_;
  std::vector<int> hosts_, machines_;
  std::vector<std::string> host_names_;
  std::mutex mutex_;                    // guards the maps below
  std::condition_variable split_done_;  // also signals that memory is shared
  std::map<std::int64_t, Reduction> reductions_;
  std::map<std::int64_t, Split> splits_;
  std::map<std::int64_t, SharedAllocation> allocations_;
  std::map<int, std::shared_ptr<SharedBlock>> channels_;  // by tag
  std::shared_ptr<WorldEnd> end_;
};

}  // namespace echelon::inline comm
