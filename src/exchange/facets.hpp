// What some strategies can do beside the steps of strategy.hpp. A strategy has a facet where it derives from it.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/group.hpp"
#include "device/tensor.hpp"
#include "exchange/asynchronous/ledger.hpp"
#include "exchange/staleness.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// Null where the strategy has none.
template <class Facet>
Facet* facet_of(Strategy& strategy) {
  return dynamic_cast<Facet*>(&strategy);
}
template <class Facet>
const Facet* facet_of(const Strategy& strategy) {
  return dynamic_cast<const Facet*>(&strategy);
}

// Where replicas meet on call.
class MeetsOnCall {
 public:
  virtual ~MeetsOnCall() = default;
  // Once a meeting: this rank has come and does no step until it is over, so that others need not wait for it. May wait
  // for answers to what it sent and for the meeting before, to which all have come.
  virtual void come_to_meeting() = 0;
};

// Of strategies that declare goes_on_without, on a run that has lost these ranks of its engine, which was broken off
// (Engine::settle).
class Rescues {
 public:
  virtual ~Rescues() = default;
  // The run's present weights come into the arenas of all that are left, and visit_state shows what belongs to them.
  // Collective over `living`, on another engine, blocking; may be called again where it threw. False, on all ranks,
  // where weights were lost too.
  virtual bool rescue(Group& living, const std::vector<int>& lost) = 0;
};

// Of strategies with asynchronous servers; all is empty where there is nobody to exchange with.
class ServesUpdates {
 public:
  virtual ~ServesUpdates() = default;
  // What the servers on this rank received up to the last meeting, by worker.
  virtual std::vector<StalenessTally> staleness() const = 0;
  // The number of buckets of which this rank serves a part.
  virtual std::int64_t pieces_served() const = 0;
  // What the servers on this rank took up since the last call, by bucket, whose parts are the whole one after the
  // other; empty where this rank serves nothing. Drained at a meeting, it reaches up to this meeting, and may hold what
  // came after it.
  virtual std::vector<LedgerBytes> take_ledgers() = 0;
};

class HoldsUpdates {
 public:
  virtual ~HoldsUpdates() = default;
  // Updates of this rank that were not sent in their step, because a receiver was slow; NaN where that cannot be.
  virtual double updates_held() const = 0;
};

// Where gradients are summed by the devices' own library.
class SumsOnDevices {
 public:
  virtual ~SumsOnDevices() = default;
  // Enqueues the sum of a tensor over `ranks` replicas, in place, between what is on the device's stream and what
  // comes. Collective, in the same order among gradients on all ranks; the host waits for nothing. False, on all ranks,
  // where there is no such sum.
  virtual bool sum_on_devices(const Tensor& tensor, int ranks) = 0;
};

inline void join_meeting(Strategy& strategy) {
  if (auto* meets = facet_of<MeetsOnCall>(strategy)) meets->come_to_meeting();
}
inline std::vector<LedgerBytes> take_ledgers(Strategy& strategy) {
  auto* serves = facet_of<ServesUpdates>(strategy);
  return serves ? serves->take_ledgers() : std::vector<LedgerBytes>();
}

}  // namespace echelon::inline exchange
