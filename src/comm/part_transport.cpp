// SPDX-License-Identifier: Apache-2.0
#include "comm/part_transport.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/numbered.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/executor.hpp"
#include "comm/counters.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kSplitTag = kTagsOfPart - 1;

class PartTransport final : public Transport {
 public:
  // `next`: the first space that no part of this process over `whole` uses.
  PartTransport(std::shared_ptr<Transport> whole, std::vector<int> members, int space, std::shared_ptr<int> next)
      : whole_(std::move(whole)), members_(std::move(members)), space_(space), next_(std::move(next)) {
    if (space_ >= kSpaces)
      throw EnvironmentError(fmt::format("more than {} groups of ranks were made over one transport", kSpaces));
    ranks_.assign(static_cast<std::size_t>(whole_->size()), -1);
    for (int rank = 0; rank < size(); ++rank) ranks_[static_cast<std::size_t>(in_whole(rank))] = rank;
    rank_ = ranks_[static_cast<std::size_t>(whole_->rank())];
    ECHELON_CHECK_GE(rank_, 0, "rank {} is not a member of its part", whole_->rank());
    number_hosts();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string name() const override { return whole_->name(); }
  const std::vector<int>& hosts() const override { return hosts_; }
  const std::vector<std::string>& host_names() const override { return host_names_; }
  const std::vector<int>& machines() const override { return machines_; }
  const NetworkShape* shape() const override { return whole_->shape(); }
  const Clock& clock() const override { return whole_->clock(); }
  double wakes_at_s() const override { return whole_->wakes_at_s(); }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    const Request request = whole_->isend(in_whole(peer), in_space(tag), data, bytes);
    counters_.sent(bytes);
    return request;
  }

  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const Request request = whole_->irecv(peer == kAnySource ? kAnySource : in_whole(peer), in_space(tag), data, bytes);
    receives_.insert(request.id);
    return request;
  }

  std::optional<Completion> test(Request& request) override {
    const std::int64_t id = request.id;
    std::optional<Completion> completion;
    try {
      completion = whole_->test(request);
    } catch (...) {
      receives_.erase(id);
      throw;
    }
    if (!completion) return std::nullopt;
    completion->peer = ranks_[static_cast<std::size_t>(completion->peer)];
    if (receives_.erase(id) > 0) counters_.received(completion->bytes);
    return completion;
  }

  void cancel(Request& request) override {
    receives_.erase(request.id);
    whole_->cancel(request);
  }
  std::size_t abandoned() const override { return whole_->abandoned(); }

  bool has_library_allreduce() const override { return false; }
  Request iallreduce(void*, std::size_t, DType) override {
    throw EnvironmentError("the message library sums over all ranks that it was started with, not over some of them");
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    const std::vector<Wish> wishes = gather({color, key, *next_});
    std::vector<int> order;
    int space = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const Wish& wish = wishes[static_cast<std::size_t>(rank)];
      space = std::max(space, wish.next_space);
      if (wish.color == color) order.push_back(rank);
    }
    const auto key_of = [&](int rank) { return wishes[static_cast<std::size_t>(rank)].key; };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
    *next_ = space + 1;
    for (int& rank : order) rank = in_whole(rank);
    return std::make_unique<PartTransport>(whole_, std::move(order), space, next_);
  }

  bool checks_messages() const override { return whole_->checks_messages(); }
  WireCounters counters() const override { return counters_.read(); }
  [[noreturn]] void abort(int exit_code) override {
    whole_->abort(exit_code);
    std::abort();  // not reached; g++ 12 does not see this where it inlines the call
  }

 private:
  struct Wish {
    int color, key, next_space;
  };

  int in_whole(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  int in_space(int tag) const {
    if (tag >= kTagsOfPart)
      throw EnvironmentError(
          fmt::format("message tag {} of {}: the exchange has too many buckets; a larger exchange.bucket_mb has fewer",
                      tag, kTagsOfPart));
    return tag + space_ * kTagsOfPart;
  }

  // Numbers hosts as Transport::hosts requires: from 0, in the order of first ranks of this part.
  void number_hosts() {
    std::vector<int> in_whole_hosts, in_whole_machines;
    for (const int member : members_) {
      in_whole_hosts.push_back(whole_->hosts()[static_cast<std::size_t>(member)]);
      in_whole_machines.push_back(whole_->machines()[static_cast<std::size_t>(member)]);
    }
    hosts_ = numbered(in_whole_hosts);
    machines_ = numbered(in_whole_machines);
    for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
      if (static_cast<std::size_t>(hosts_[rank]) == host_names_.size())
        host_names_.push_back(whole_->host_names()[static_cast<std::size_t>(in_whole_hosts[rank])]);
  }

  // Gathers the wishes of all members, over binomial trees; blocking.
  std::vector<Wish> gather(const Wish& own) {
    std::vector<Wish> all(members_.size());
    all[static_cast<std::size_t>(rank_)] = own;
    Executor gathering(kLeastWindow);
    gathering.start(make_allgather(rank_, size(), sizeof(Wish)), all.data(), DType::u8, kSplitTag);
    while (!gathering.done())
      if (!gathering.advance(*this)) sched_yield();
    return all;
  }

  std::shared_ptr<Transport> whole_;
  std::vector<int> members_;  // rank in the whole of each rank of this part
  std::vector<int> ranks_;    // the reverse; -1: not a member
  int space_, rank_ = 0;
  std::shared_ptr<int> next_;
  std::vector<int> hosts_, machines_;
  std::vector<std::string> host_names_;
  std::unordered_set<std::int64_t> receives_;  // receives in flight
  AtomicCounters counters_;
};

}  // namespace

std::unique_ptr<Transport> make_part_transport(std::shared_ptr<Transport> whole, std::vector<int> members, int space) {
  return std::make_unique<PartTransport>(std::move(whole), std::move(members), space, std::make_shared<int>(space + 1));
}

}  // namespace echelon::inline comm
