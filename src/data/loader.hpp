// SPDX-License-Identifier: Apache-2.0
// Provides the batches of one replica. A thread of the loader reads them ahead.
//
// Files are read by hyperslabs into bounded buffers, never whole. Values become x = (value * scale - mean[c]) / std[c]
// in the model's dtype, tokens i32. A batch is a function of the data set, the plan and the augmentation's seed only,
// so a resumed run gets the batches that the interrupted run would have got.
#pragma once

#include <cstdint>
#include <memory>

#include "base/dtype.hpp"
#include "data/augment.hpp"
#include "data/batch.hpp"
#include "data/dataset.hpp"
#include "data/draw_plan.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

struct LoaderOptions {
  int replica = 0;
  bool all_replicas = false;             // one batch for all replicas: SamplePlan::all_ids (data.as_replicas)
  DType dtype = DType::f32;              // type of samples, weights and numeric labels: f32 or f64
  int prefetch = 2;                      // number of batches to read ahead
  int threads = 1;                       // samples of one shape: threads that decode and change them
  std::int64_t buffer_bytes = 64 << 20;  // limit for decoded records; at least one chunk is held
  Augmentation augmentation{};           // for images
  Slab slab{};                           // what this rank takes of samples and labels
  std::int64_t start_epoch = 0;
  std::int64_t start_step = 0;
  std::int64_t end_epoch = -1;  // the first epoch that is not read; -1: no end
  DrawSource* draws = nullptr;  // batches are drawn from it instead; must outlive the loader
};

class Loader final : public BatchSource {
 public:
  // Copies the data set and the plan, and starts the reading thread at (start_epoch, start_step). Throws std::bad_alloc
  // if the host has no memory for the batches.
  Loader(const Dataset& dataset, const SamplePlan& plan, const LoaderOptions& options);
  ~Loader() override;
  Loader(const Loader&) = delete;

  const Batch& at(std::int64_t epoch, std::int64_t step) override;
  const Batch* draw() override;
  // Waits for the next batch in order and returns it. Throws errors of the reading thread (load_chunk) after the
  // batches that precede them. Must not be called beyond end_epoch.
  const Batch& next();
  double wait_s() const;  // seconds spent waiting in at() and next() so far
  std::uint64_t bytes_read() const override;
  std::uint64_t bytes_used() const override;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline data
