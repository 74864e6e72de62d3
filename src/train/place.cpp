#include "train/place.hpp"

#include <utility>

namespace echelon {

Place::Place(Mesh mesh, Engine& world) : mesh_(std::move(mesh)), seat_(mesh_.seat(world.rank())), world_(world) {
  if (!mesh_.splits()) return;
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
