#include "train/place.hpp"

#include <utility>

namespace echelon {

Place::Place(Mesh mesh, Engine& world) : mesh_(std::move(mesh)), seat_(mesh_.seat(world.rank())), world_(world) {
  if (!mesh_.splits()) return;
  group_ = world.split(seat_.replica, part());
  replicas_ = world.split(part(), seat_.replica);
  shards_ = world.split(seat_.replica * mesh_.pipeline() + seat_.stage, seat_.shard);
}

}  // namespace echelon
