// SPDX-License-Identifier: Apache-2.0
#include "run/running.hpp"

#include "base/checksum.hpp"
#include "checkpoint/trained_data.hpp"
#include "exchange/facets.hpp"
#include "job/agree.hpp"
#include "run/channels.hpp"

namespace echelon::inline run {
namespace {

// Collective.
std::unique_ptr<UpdateOrderHook> record_update_order(Ready& r) {
  if (!r.built.asynchronous() || r.context.slot.ranks == 1) return nullptr;
  const auto* serves = facet_of<ServesUpdates>(*r.built.strategy);
  const std::int64_t own_pieces = serves ? serves->pieces_served() : 0;
  LedgerHeader header;
  header.rank = r.context.slot.rank, header.ranks = r.context.slot.ranks;
  header.workers = r.placed.groups.roles().workers;
  for (const double pieces : r.context.group.gather(static_cast<double>(own_pieces))) {
    header.servers += pieces > 0 ? 1 : 0;
    header.pieces += static_cast<std::int64_t>(pieces);
  }
  if (header.servers == 0) return nullptr;  // the strategy has no servers
  const RunPlan& plan = r.agreed.plan;
  header.first_step = r.agreed.start.step, header.total_steps = plan.total_steps;
  header.samples = plan.shards.samples();
  header.config = r.opened.provenance.config_hash;
  header.data = trained_data_of(plan.train).fingerprint;
  header.weights = hex64(r.built.arenas.checksum());
  header.device = r.opened.device->describe();
  std::unique_ptr<UpdateOrderHook> hook;
  all_or_none(r.context.group, [&] {
    // No run can repeat the orders of a split model: its hook records nothing, but settles what servers told before
    // meetings.
    const bool records = own_pieces > 0 && !r.placed.groups.mesh().splits();
    const std::string path = records ? arrivals_path(r.agreed.start.folder.attempt, r.context.slot.rank) : "";
    hook = std::make_unique<UpdateOrderHook>(*r.built.strategy, path, header);
  });
  return hook;
}

}  // namespace

Running::Running(Ready& r)
    : update_order(record_update_order(r)),
      control(r.context.engine, kControlWordsChannel, r.built.strategy->progress(), r.agreed.replay.script,
              NewsHearer{.phase = &r.context.phase, .hang_timeout_s = r.agreed.config.run.hang_timeout_s},
              r.placed.replica_or_null()),
      wire(r.context.engine),
      waits(r.context.engine, r.context.group),
      loop{r.agreed.config, r.agreed.plan, r.placed.groups.replica(), *r.stepper, r.context.group,
           control,         r.built.state, r.context.phase,           r.hooks} {
  if (update_order) loop.hooks.insert(loop.hooks.begin(), update_order.get());  // before hooks that may end the run
}

}  // namespace echelon::inline run
