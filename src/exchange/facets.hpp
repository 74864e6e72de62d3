// SPDX-License-Identifier: Apache-2.0
// Abilities that some strategies have in addition to strategy.hpp. A strategy has a facet if it derives from it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group.hpp"
#include "device/tensor.hpp"
#include "exchange/asynchronous/ledger.hpp"
#include "exchange/staleness.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// Null if the strategy does not have this facet.
template <class Facet>
Facet* facet_of(Strategy& strategy) {
  return dynamic_cast<Facet*>(&strategy);
}
template <class Facet>
const Facet* facet_of(const Strategy& strategy) {
  return dynamic_cast<const Facet*>(&strategy);
}

// The replicas of the strategy update asynchronously and meet only when rank 0 calls a meeting.
class AsynchronousReplicas {
 public:
  virtual ~AsynchronousReplicas() = default;
  // Called once per meeting: this rank has come and does no step until the meeting is over, so that others need not
  // wait for it. May wait for answers to its messages, and for the meeting before, which all ranks have reached.
  virtual void come_to_meeting() = 0;
};

// A strategy that declares goes_on_without continues a run that has lost ranks of its engine, which was broken off
// (Engine::settle).
class Rescues {
 public:
  virtual ~Rescues() = default;
  // Brings the run's present weights into the arenas of all remaining ranks; visit_state then shows their state.
  // Collective over `living`, which is on another engine; blocking; may be called again after it threw. Returns false
  // on all ranks if weights were lost too.
  virtual bool rescue(Group& living, const std::vector<int>& lost) = 0;
};

// The strategy has asynchronous servers. All results are empty if there is nobody to exchange with.
class ServesUpdates {
 public:
  virtual ~ServesUpdates() = default;
  // One tally per worker, of the updates that the servers on this rank received up to the last meeting.
  virtual std::vector<StalenessTally> staleness() const = 0;
  // The number of buckets of which this rank serves a part.
  virtual std::int64_t pieces_served() const = 0;
  // The updates that the servers on this rank applied since the last call: one part of the ledger per bucket, to be
  // appended to the parts before; empty if this rank serves nothing. A call at a meeting returns all updates up to that
  // meeting, and possibly later ones.
  virtual std::vector<LedgerBytes> take_ledgers() = 0;
};

// The strategy may hold updates back.
class HoldsUpdates {
 public:
  virtual ~HoldsUpdates() = default;
  // Number of updates of this rank that were not sent in their step because a receiver was slow; NaN if that cannot
  // happen.
  virtual double updates_held() const = 0;
};

// The devices' own library sums gradients.
class SumsOnDevices {
 public:
  virtual ~SumsOnDevices() = default;
  // Enqueues the sum of a tensor over `ranks` replicas, in place, on the device's stream. Collective, in the same order
  // among gradients on all ranks; the host does not wait. Returns false on all ranks if there is no such sum.
  virtual bool sum_on_devices(const Tensor& tensor, int ranks) = 0;
};

inline void join_meeting(Strategy& strategy) {
  if (auto* meets = facet_of<AsynchronousReplicas>(strategy)) meets->come_to_meeting();
}
inline std::vector<LedgerBytes> take_ledgers(Strategy& strategy) {
  auto* serves = facet_of<ServesUpdates>(strategy);
  return serves ? serves->take_ledgers() : std::vector<LedgerBytes>();
}

}  // namespace echelon::inline exchange
