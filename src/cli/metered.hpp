// SPDX-License-Identifier: Apache-2.0
// Measures the time and heap that a rank on virtual time spends in its own machines, drivers, plans and executors,
// without the virtual network below them. The time is that of the monotonic clock.
#pragma once

#include <memory>

#include "base/allocations.hpp"
#include "base/clock.hpp"
#include "comm/wrapped_transport.hpp"

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
class MeteredTransport final : public WrappedTransport {
 public:
  MeteredTransport(std::unique_ptr<Transport> inner, Meter& meter)
      : WrappedTransport(std::move(inner)), meter_(meter) {}

  Request isend(int peer, int tag, const void* data, std::size_t bytes) override {
    const Metered below(meter_, -1);
    return inner().isend(peer, tag, data, bytes);
  }
  Request irecv(int peer, int tag, void* data, std::size_t bytes) override {
    const Metered below(meter_, -1);
    return inner().irecv(peer, tag, data, bytes);
  }
  std::optional<Completion> test(Request& request) override {
    const Metered below(meter_, -1);
    return inner().test(request);
  }

  std::unique_ptr<Transport> split(int color, int key) override { return inner().split(color, key); }

 private:
  Meter& meter_;
};

}  // namespace echelon::cli
