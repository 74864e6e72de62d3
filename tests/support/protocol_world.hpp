// SPDX-License-Identifier: Apache-2.0
// Runs protocol machines on virtual time: one actor per rank, without an engine or threads.
#pragma once

#include <memory>
#include <vector>

#include "comm/virtual/protocol_actor.hpp"

namespace echelon::test {

using echelon::ProtocolActor;

// Runs a protocol on all ranks of a virtual network until each is done. Rank r is Rank(args..., r, world), whose
// `actor` points to its ProtocolActor. The constructor throws what a rank throws, and an EnvironmentError where the
// ranks wait for ever or are not done after 10 s of virtual time.
template <class Rank>
class ProtocolRun {
 public:
  template <class... Args>
  ProtocolRun(int ranks, const VirtualNetwork& network, const Args&... args) : world_(ranks, network) {
    std::vector<VirtualActor*> actors;
    for (int r = 0; r < ranks; ++r) {
      ranks_.push_back(std::make_unique<Rank>(args..., r, world_));
      actors.push_back(&*ranks_.back()->actor);
    }
    world_.run(actors, 10);
  }
  const std::vector<std::unique_ptr<Rank>>& ranks() const { return ranks_; }

 private:
  VirtualWorld world_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace echelon::test
