// The messages and the arithmetic of servers with backup workers, in host memory: uncoded values of the arenas' dtype.
//
// Gradients leave from the worker's arena and weights arrive in it, or in its staging memory where it is on a device.
// A server keeps weights of its own, because a late worker on its rank still reads older ones. Memory of a server
// beside the worker's, G bytes of weights, k workers, s servers: its weights and sums (2G), a gradient of each other
// worker ((k - 1) G / s), weights on their way (G / s; as much again for each worker that takes none); on devices its
// states. A rank without a part holds none of it.
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
  // `buckets`: ranges of the arenas, and `parts` of each by rank. All that it is given outlives it.
  BackupBuffers(int rank, int workers, std::vector<ArenaRange> buckets, std::vector<Parts> parts, Arenas& arenas,
                Optimiser& optimiser, Staging& gradients, Staging& weights);

  // Compute thread, before the machine runs: the servers' weights and states are this rank's.
  void begin();
  // Compute thread, while no step is taken: the states of the own parts are in the arenas of the optimiser, the weights
  // of the own parts in the arenas of a rank that serves alone.
  void store_states();
  void store_weights();
  // Compute thread of a worker: its weights, before new ones arrive among them, and back to its device. G bytes more.
  void keep_weights();
  void take_back_weights();

  Bytes push(int b, int server) override { return {gradients_.at(place(b, server).begin), bytes_of(b, server)}; }
  Bytes weights_room(int b, int server) override { return {weights_.at(place(b, server).begin), bytes_of(b, server)}; }
  Bytes push_room(int b, int worker) override;
  void take_step(int b, const BackupCommand& command) override;
  Message weights(int b) override;
  void take_own(int b) override;

 private:
  bool serves() const;                        // this rank has a part
  ArenaRange place(int b, int server) const;  // in the arenas
  std::size_t bytes_of(int b, int server) const;
  const void* pushed(int b, int worker) const;
  // The own parts of every state, between the optimiser's arenas and the server's on devices.
  void copy_states(bool to_server);

  int rank_, workers_;
  std::vector<ArenaRange> buckets_;
  std::vector<Parts> parts_;
  Arenas& arenas_;
  Optimiser& optimiser_;
  Staging& gradients_;
  Staging& weights_;
  std::unique_ptr<Device> host_;  // of the servers, where the worker's device is none for them; else null
  std::optional<Arenas> served_;  // of the whole model, of which the own parts are used; none without a part
  std::optional<Optimiser> steps_;
  std::vector<std::byte> before_;                // as keep_weights found them
  std::int64_t step_ = -1;                       // that the optimiser has begun
  std::map<std::pair<int, int>, Memory> rooms_;  // by bucket and worker
  std::vector<Message> newest_;                  // by bucket: the weights as they are now, once asked for
  std::vector<std::vector<Message>> kept_;       // by bucket: what was made, some of it on its way
};

}  // namespace echelon::inline exchange
