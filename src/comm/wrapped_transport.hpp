// SPDX-License-Identifier: Apache-2.0
// A transport that hands every call to the one that it wraps; a subclass overrides the calls that it changes. `split`
// is left to subclasses, because a part of a wrapped transport is wrapped itself. Hosts are given before wrapping.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace echelon::inline comm {

class WrappedTransport : public Transport {
 public:
  explicit WrappedTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string name() const override { return inner_->name(); }
  const std::vector<int>& hosts() const override { return inner_->hosts(); }
  const std::vector<std::string>& host_names() const override { return inner_->host_names(); }
  const std::vector<int>& machines() const override { return inner_->machines(); }
  const NetworkShape* shape() const override { return inner_->shape(); }
  const Clock& clock() const override { return inner_->clock(); }
  double wakes_at_s() const override { return inner_->wakes_at_s(); }

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    return inner_->isend(peer, tag, data, bytes);
  }
  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    return inner_->irecv(peer, tag, data, bytes);
  }
  std::optional<Completion> test(Request& request) override { return inner_->test(request); }
  void cancel(Request& request) override { inner_->cancel(request); }
  std::size_t abandoned() const override { return inner_->abandoned(); }

  bool has_library_allreduce() const override { return inner_->has_library_allreduce(); }
  Request iallreduce(void* data, std::size_t elems, DType dtype) override {
    return inner_->iallreduce(data, elems, dtype);
  }
  std::shared_ptr<SharedBlock> share(std::size_t bytes) override { return inner_->share(bytes); }
  bool shares_channels() const override { return inner_->shares_channels(); }
  SharedChannel* shared_channel(int tag, int& missing) override { return inner_->shared_channel(tag, missing); }
  bool checks_messages() const override { return inner_->checks_messages(); }

  WireCounters counters() const override { return inner_->counters(); }
  std::vector<double> bytes_to_peers() const override { return inner_->bytes_to_peers(); }
  CardRates card_rates() const override { return inner_->card_rates(); }
  void restart_card_rates() override { inner_->restart_card_rates(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_->abort(exit_code);
    std::abort();  // not reached; g++ 12 does not see this where it inlines the call
  }

 protected:
  Transport& inner() { return *inner_; }
  const Transport& inner() const { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace echelon::inline comm
