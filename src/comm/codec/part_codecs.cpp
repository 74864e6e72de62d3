// SPDX-License-Identifier: Apache-2.0
#include "comm/codec/part_codecs.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline comm {

PartCodecs::PartCodecs(std::unique_ptr<Codec> codec) : route_(codec->info().route) {
  parts_.push_back({{}, std::move(codec)});
}

PartCodecs::PartCodecs(CodecRoute route, const AllreduceRequest& request, const Make& make) : route_(route) {
  const ElemRange all{0, request.elems};
  parts_.push_back({all, make(all)});
  if (route != CodecRoute::direct || !front().info().by_rows) return;
  parts_.clear();
  for (int r = 0; r < request.ranks; ++r)
    if (const ElemRange part = even_part(request.elems, request.ranks, r); r == 0 || !part.empty())
      parts_.push_back({part, make(part)});
}

Codec& PartCodecs::of(ElemRange range) const {
  if (parts_.size() == 1) return front();
  const auto part = std::lower_bound(parts_.begin(), parts_.end(), range.begin,
                                     [](const Part& one, std::int64_t begin) { return one.range.begin < begin; });
  ECHELON_CHECK(part != parts_.end() && part->range == range, "[{}, {}) is no part of the bucket", range.begin,
                range.end);
  return *part->codec;
}

std::size_t PartCodecs::most_bytes(std::int64_t n) const {
  if (parts_.size() == 1) return front().most_bytes(n);
  std::size_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.codec->most_bytes(part.range.elems()));
  return most;
}

double PartCodecs::bytes(std::string_view algorithm, const AllreduceRequest& request) const {
  const std::int64_t k = request.ranks;
  if (k == 1 || request.elems == 0) return 0;
  if (!front().exact_size()) return std::numeric_limits<double>::quiet_NaN();
  if (route_ == CodecRoute::any)
    return static_cast<double>(front().most_bytes(price_allreduce(algorithm, request).payload_elems));
  if (route_ == CodecRoute::gather)
    return static_cast<double>(k * (k - 1)) * static_cast<double>(front().most_bytes(request.elems));
  double parts = 0;
  for (int r = 0; r < request.ranks; ++r)
    if (const ElemRange part = even_part(request.elems, request.ranks, r); !part.empty())
      parts += static_cast<double>(of(part).most_bytes(part.elems()));
  return 2 * static_cast<double>(k - 1) * parts;
}

}  // namespace echelon::inline comm
