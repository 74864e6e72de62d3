// SPDX-License-Identifier: Apache-2.0
// A binomial tree: rank v adds the sums of v+1, v+2, v+4 .. (up to its lowest set bit and the number of ranks), one
// message at a time, and sends the result to v without its lowest set bit; the sum comes down the same tree, to the
// largest subtree first.
//
// Distance doubles over contiguous ranks: a power of two of ranks sums ((0+1)+(2+3))+((4+5)+(6+7)).
// Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19 (2005).
#include <bit>

#include "comm/collective/rooted.hpp"

namespace echelon::inline comm {
namespace {

TreePosition position_in(int me, int ranks) {
  TreePosition position{.parent = me == 0 ? -1 : me & (me - 1), .children = {}, .one_at_a_time = true};
  for (int bit = 1; me + bit < ranks && (me & bit) == 0; bit <<= 1) position.children.push_back(me + bit);
  return position;
}

int height(int ranks) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1))); }

}  // namespace

const Halves binomial_halves = kRootedHalves<position_in, height>;

std::shared_ptr<const Plan> make_binomial_allreduce(const AllreduceRequest& request) {
  return make_rooted("binomial", request, position_in(request.rank, request.ranks), height(request.ranks));
}

Price price_binomial(const AllreduceRequest& request) { return price_by_halves("binomial", request, 1); }

}  // namespace echelon::inline comm
