// SPDX-License-Identifier: Apache-2.0
#include "tests/support/codec_world.hpp"

#include "base/hash_rng.hpp"
#include "comm/collective/algorithms.hpp"
#include "tests/support/plan_world.hpp"

namespace echelon::test {

CodecWorld::CodecWorld(const std::string& codec, const std::string& algorithm, int ranks, std::int64_t elems,
                       CodecOptions options)
    : elems_(elems), residuals_(static_cast<std::size_t>(ranks)), residual_(static_cast<std::size_t>(ranks)) {
  options.ranks = ranks;
  const CodecInfo& info = codec_info(codec);
  for (int r = 0; r < ranks; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const AllreduceRequest request{.rank = r, .ranks = ranks, .elems = elems, .segment_elems = 50, .hosts = {}};
    plans_.push_back(info.route == CodecRoute::any      ? make_allreduce(algorithm, request)
                     : info.route == CodecRoute::direct ? make_direct_allreduce(request)
                                                        : make_allreduce("naive", request));
    const ElemRange own = even_part(elems, ranks, r);
    if (info.lossy) residuals_[at].resize(static_cast<std::size_t>(elems));
    if (info.route == CodecRoute::direct) residual_[at].resize(static_cast<std::size_t>(own.elems()));
    buckets_.push_back(
        std::make_unique<CodedBucket>(make_codec(codec, options), elems, residuals_[at], residual_[at], own.begin));
  }
}

void CodecWorld::exchange(std::vector<std::vector<float>>& data, std::uint64_t step) {
  std::vector<void*> buffers;
  std::vector<WireForm*> forms;
  for (std::size_t r = 0; r < buckets_.size(); ++r) {
    buckets_[r]->begin_step(HashRng(7, "codec world").at(step).at(r).key());
    buffers.push_back(data[r].data());
    forms.push_back(buckets_[r].get());
  }
  counters_ = run_plans(plans_, buffers, DType::f32, 6, forms);
}

std::vector<double> CodecWorld::residual() const {
  std::vector<double> all(static_cast<std::size_t>(elems_));
  const int ranks = static_cast<int>(buckets_.size());
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float>& residual = residuals_[static_cast<std::size_t>(r)];
    for (std::size_t i = 0; i < residual.size(); ++i) all[i] += residual[i];
    const std::vector<float>& sums = residual_[static_cast<std::size_t>(r)];
    const auto first = static_cast<std::size_t>(even_part(elems_, ranks, r).begin);
    for (std::size_t i = 0; i < sums.size(); ++i) all[first + i] += sums[i];
  }
  return all;
}

}  // namespace echelon::test
