#include "train/place.hpp"

#include <utility>

#include "base/check.hpp"

namespace echelon {

Place::Place(const Roles& roles, Mesh mesh, Engine& world) : roles_(roles), mesh_(std::move(mesh)), world_(world) {
  ECHELON_CHECK_EQ(roles_.ranks(), world.size());
  ECHELON_CHECK_EQ(roles_.workers, mesh_.ranks());
  if (trains()) seat_ = mesh_.seat(world.rank());
  if (roles_.mixed()) peers_ = world.split(static_cast<int>(role()), world.rank());
  if (!mesh_.splits()) return;
  ECHELON_CHECK(!roles_.mixed(), "a split model whose ranks have several roles");
  const int index = mesh_.index_in_group(seat_), part = mesh_.part(seat_), space = mesh_.space();
  const int stage = seat_.replica * mesh_.pipeline() + seat_.stage;
  group_ = world.split(seat_.replica, index);
  replicas_ = world.split(part, seat_.replica * space + seat_.band);
  twins_ = world.split(index, seat_.replica);
  model_ = world.split(seat_.replica * space + seat_.band, part);
  shards_ = world.split(stage * space + seat_.band, seat_.shard);
  bands_ = world.split(seat_.replica * mesh_.parts() + part, seat_.band);
}

}  // namespace echelon
