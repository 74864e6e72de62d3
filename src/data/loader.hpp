// Batches for one replica, read ahead by a thread of its own.
//
// Reads are by hyperslab in bounded buffers, never whole files; values become x = (value * scale - mean[c]) / std[c] in
// the model's dtype, tokens 32-bit integers. What follows from the plan is all that decides a batch's content, so a
// resumed run sees what it would have seen.
#pragma once

#include <cstdint>
#include <memory>

#include "base/dtype.hpp"
#include "data/augment.hpp"
#include "data/batch.hpp"
#include "data/dataset.hpp"
#include "data/sample_plan.hpp"

namespace echelon::inline data {

struct LoaderOptions {
  int replica = 0;
  bool all_replicas = false;  // this replica stands for all of them: plan.all_ids (`data.as_replicas`)
  DType dtype = DType::f32;
  int prefetch = 2;                      // batches ready ahead
  std::int64_t buffer_bytes = 64 << 20;  // records held decoded, at most
  Augmentation augmentation{};           // of images
  std::int64_t start_epoch = 0;
  std::int64_t start_step = 0;
  std::int64_t end_epoch = -1;  // the first epoch that is not read; -1: never ends
};

class Loader final : public BatchSource {
 public:
  // The dataset and plan are copied. Labels outside [0, classes) are a DataError naming file and record.
  Loader(const Dataset& dataset, const SamplePlan& plan, const LoaderOptions& options);
  ~Loader() override;
  Loader(const Loader&) = delete;

  const Batch& at(std::int64_t epoch, std::int64_t step) override;
  // The next batch in order; waits for it. Errors of the reading thread are thrown here, after the batches before them.
  // Asking beyond end_epoch is a defect.
  const Batch& next();
  double wait_s() const;  // total time spent waiting in next()
  std::uint64_t bytes_read() const override;
  std::uint64_t bytes_used() const override;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace echelon::inline data
