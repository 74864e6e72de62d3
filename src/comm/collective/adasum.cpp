// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/adasum.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "comm/collective/folded.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

struct Products {
  double aa = 0, ab = 0, bb = 0;
};

// The order of the sums depends on n only; there are several sums, which fit the processor's vectors.
template <class T>
Products products(const T* a, const T* b, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;
  std::array<Products, kLanes> lanes;
  for (std::int64_t first = 0; first < n; first += kLanes)
    for (std::int64_t lane = 0; lane < std::min(kLanes, n - first); ++lane) {
      const double x = a[first + lane], y = b[first + lane];
      Products& sum = lanes[static_cast<std::size_t>(lane)];
      sum.aa += x * x, sum.ab += x * y, sum.bb += y * y;
    }
  Products all;
  for (const Products& lane : lanes) all.aa += lane.aa, all.ab += lane.ab, all.bb += lane.bb;
  return all;
}

template <class T>
void combine(const T* a, const T* b, T* to, std::int64_t n) {
  const auto [aa, ab, bb] = products(a, b, n);
  const bool either_is_zero = aa == 0 || bb == 0;
  const double of_a = either_is_zero ? 1 : 1 - ab / (2 * aa), of_b = either_is_zero ? 1 : 1 - ab / (2 * bb);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<T>(of_a * static_cast<double>(a[i]) + of_b * static_cast<double>(b[i]));
}

AllreduceRequest whole_messages(AllreduceRequest request) {
  request.segment_elems = request.elems;
  return request;
}

}  // namespace

std::shared_ptr<const Plan> make_adasum(AllreduceRequest request) {
  return make_butterfly_allreduce(whole_messages(std::move(request)));
}

Price price_adasum(AllreduceRequest request) {
  return price_allreduce("butterfly", whole_messages(std::move(request)));
}

void adasum(DType dtype, const void* a, const void* b, void* to, std::int64_t n) {
  with_float(dtype,
             [&]<class T>(T) { combine(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(to), n); });
}

AdasumForm::AdasumForm(DType dtype, int rank, int ranks, std::int64_t elems, std::vector<Part> parts)
    : dtype_(dtype), rank_(rank), ranks_(ranks), elems_(elems), parts_(std::move(parts)) {}

std::size_t AdasumForm::encode(void* values, ElemRange range, bool, std::byte* wire) {
  const std::size_t bytes = most_bytes(range.elems());
  std::memcpy(wire, values, bytes);
  return bytes;
}

void AdasumForm::decode(const std::byte* wire, std::size_t bytes, void* values, ElemRange) {
  std::memcpy(values, wire, bytes);
}

// Whether this rank's operand is that of the lower ranks. The first operand comes from its right neighbour if the rank
// represents both; the others come round by round.
bool AdasumForm::comes_first() const {
  const Folded folded(ranks_);
  const int round = combined_ - (folded.represents_two(rank_) ? 1 : 0);
  return round < 0 || (folded.number(rank_) >> round & 1) == 0;
}

void AdasumForm::decode_add(const std::byte* wire, std::size_t, void* values, ElemRange range) {
  ECHELON_CHECK(range.begin == 0 && range.end == elems_, "Adasum of [{}, {}) of {} values", range.begin, range.end,
                elems_);
  const bool first = comes_first();
  ++combined_;
  for (const Part& part : parts_) {
    const std::size_t at = most_bytes(part.range.begin);
    void* own = static_cast<std::byte*>(values) + at;
    const void* other = wire + at;
    if (part.summed)
      host_vector_ops().add(dtype_, own, other, static_cast<std::size_t>(part.range.elems()));
    else
      adasum(dtype_, first ? own : other, first ? other : own, own, part.range.elems());
  }
}

}  // namespace echelon::inline comm
