// SPDX-License-Identifier: Apache-2.0
// The messages and the arithmetic of servers with backup workers, in host memory: uncoded values of the arenas' dtype.
//
// Gradients are sent from the worker's arena, and weights are received into it; a device with its own memory uses
// staging memory instead. A server has its own weights, because a late worker on its rank still reads older ones. With
// G bytes of weights, k workers and s servers, a server needs in addition to the worker: weights and sums (2 G), a
// gradient of each other worker ((k - 1) G / s), weights in flight (G / s, and as much for each worker that does not
// receive), and for a device with its own memory the optimiser states. A rank that serves nothing needs none of this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/arenas.hpp"
#include "exchange/backup/protocol.hpp"
#include "exchange/staging.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline exchange {

class BackupBuffers final : public BackupMemory {
 public:
  // `buckets` are ranges of the arenas, `parts` gives for each the parts by rank. The references must outlive this
  // object.
  BackupBuffers(int rank, int workers, std::vector<ArenaRange> buckets, std::vector<Parts> parts, Arenas& arenas,
                Optimiser& optimiser, Staging& gradients, Staging& weights);

  // Copies this rank's weights and states to the server. Compute thread, before the machine runs.
  void begin();
  // Copies the states of this rank's parts to the optimiser's arenas, and on a dedicated server the weights of its
  // parts to the arenas. Compute thread, while no step is taken.
  void store_states();
  void store_weights();
  // On a worker: saves its weights before new ones arrive, and copies the saved weights back to its device. Compute
  // thread. Takes G bytes more.
  void keep_weights();
  void take_back_weights();

  Bytes push(int b, int server) override { return {gradients_.at(range_at(b, server).begin), bytes_of(b, server)}; }
  Bytes weights_room(int b, int server) override {
    return {weights_.at(range_at(b, server).begin), bytes_of(b, server)};
  }
  Bytes push_room(int b, int worker) override;
  void take_step(int b, const BackupCommand& command) override;
  Message weights(int b) override;
  void take_own(int b) override;

 private:
  bool serves() const;                           // this rank has a part
  ArenaRange range_at(int b, int server) const;  // range in the arenas
  std::size_t bytes_of(int b, int server) const;
  const void* pushed(int b, int worker) const;
  // Copies the own parts of every state between the optimiser's arenas and the server's, if these are separate.
  void copy_states(bool to_server);

  int rank_, workers_;
  std::vector<ArenaRange> buckets_;
  std::vector<Parts> parts_;
  Arenas& arenas_;
  Optimiser& optimiser_;
  Staging& gradients_;
  Staging& weights_;
  std::unique_ptr<Device> host_;  // the servers' host device, if they cannot use the worker's; else null
  std::optional<Arenas> served_;  // arenas of the whole model, of which own parts are used; empty without a part
  std::optional<Optimiser> steps_;
  std::vector<std::byte> before_;                // weights that keep_weights saved
  std::int64_t step_ = -1;                       // the optimiser's current step
  std::map<std::pair<int, int>, Memory> rooms_;  // by bucket and worker
  std::vector<Message> newest_;                  // by bucket: the current weights as a message; null until requested
  std::vector<std::vector<Message>> kept_;       // by bucket: all messages, of which some may be in flight
};

}  // namespace echelon::inline exchange
