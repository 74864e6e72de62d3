// SPDX-License-Identifier: Apache-2.0
// Measures the time and heap that a rank on virtual time spends in its own machines, drivers, plans and executors,
// without the virtual network below them. The time is that of the monotonic clock.
#pragma once

#include <cstdlib>
#include <memory>

#include "base/allocations.hpp"
#include "base/clock.hpp"
#include "comm/transport.hpp"

namespace echelon::cli {

struct Meter {
  double seconds = 0;
  std::int64_t bytes = 0;  // bytes held now (base/allocations.hpp)
};

// Counts until the end of its scope. With `sign` -1 it subtracts its scope from an outer one.
class Metered {
 public:
  explicit Metered(Meter& meter, int sign = 1) : meter_(meter), sign_(sign), held_(held_bytes), start_s_(now_s()) {}
  ~Metered() {
    meter_.seconds += sign_ * (now_s() - start_s_);
    meter_.bytes += sign_ * (held_bytes - held_);
  }
  Metered(const Metered&) = delete;

 private:
  Meter& meter_;
  int sign_;
  std::int64_t held_;
  double start_s_;
};

// A transport whose own time and heap are not counted. The meter must outlive it.
class MeteredTransport final : public Transport {
 public:
  MeteredTransport(std::unique_ptr<Transport> inner, Meter& meter) : inner_(std::move(inner)), meter_(meter) {}

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
    const Metered below(meter_, -1);
    return inner_->isend(peer, tag, data, bytes);
  }
  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const Metered below(meter_, -1);
    return inner_->irecv(peer, tag, data, bytes);
  }
  std::optional<Completion> test(Request& request) override {
    const Metered below(meter_, -1);
    return inner_->test(request);
  }
  void cancel(Request& request) override { inner_->cancel(request); }

  bool has_library_allreduce() const override { return inner_->has_library_allreduce(); }
  Request iallreduce(void* data, std::size_t elems, DType dtype) override {
    return inner_->iallreduce(data, elems, dtype);
  }
  std::unique_ptr<Transport> split(int color, int key) override { return inner_->split(color, key); }
  WireCounters counters() const override { return inner_->counters(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_->abort(exit_code);
    std::abort();
  }

 private:
  std::unique_ptr<Transport> inner_;
  Meter& meter_;
};

}  // namespace echelon::cli
