// SPDX-License-Identifier: Apache-2.0
// The codecs of a bucket's messages, and the route that these take. A message of a codec that goes by rows is made for
// the rows of one range: on route `direct` the part of each rank then has a codec of its own. In all other cases one
// codec encodes messages of any range.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

class PartCodecs {
 public:
  // Makes the codec for messages of this range of the bucket.
  using Make = std::function<std::unique_ptr<Codec>(ElemRange)>;

  // One codec, on its own route.
  PartCodecs(std::unique_ptr<Codec> codec);  // NOLINT(google-explicit-constructor): a codec is all codecs of a bucket
  // The codecs that this route needs for a bucket of request.elems values on request.ranks ranks.
  PartCodecs(CodecRoute route, const AllreduceRequest& request, const Make& make);

  CodecRoute route() const { return route_; }
  Codec& front() const { return *parts_.front().codec; }
  // The codec of messages of `range`. A check fails if there are parts and it is none of them.
  Codec& of(ElemRange range) const;
  // The longest message of `n` values, and whether every message of n values has this length. Parts differ by a few
  // bytes, because their rows do.
  std::size_t most_bytes(std::int64_t n) const;
  bool exact_size() const { return parts_.size() == 1 && front().exact_size(); }

  // The bytes that all k ranks together send for one all-reduce of the bucket; B(range) = of(range).most_bytes(..):
  //   route any      B(payload of price_allreduce)     the only route on which algorithm, segments and hosts matter
  //   route direct   2 (k-1) sum over ranks of B(the rank's even_part)
  //   route gather   k (k-1) B(the bucket)
  // 0 for one rank or no elements; NaN where a codec has no exact_size.
  double bytes(std::string_view algorithm, const AllreduceRequest& request) const;

 private:
  struct Part {
    ElemRange range;
    std::unique_ptr<Codec> codec;
  };
  CodecRoute route_;
  std::vector<Part> parts_;  // in rising order; a single one encodes every range
};

}  // namespace echelon::inline comm
