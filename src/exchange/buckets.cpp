#include "exchange/buckets.hpp"

namespace echelon {

std::vector<ArenaRange> make_buckets(const ParameterSet& parameters, std::size_t elem_bytes, double bucket_bytes) {
  std::vector<ArenaRange> buckets;
  ArenaRange open{parameters.elems(), parameters.elems()};
  for (int i = parameters.size() - 1; i >= 0; --i) {
    open.begin = parameters[i].begin;
    const bool full = static_cast<double>(open.elems()) * static_cast<double>(elem_bytes) >= bucket_bytes;
    if (!full && i > 0) continue;
    if (open.elems() > 0) buckets.push_back(open);
    open = {open.begin, open.begin};
  }
  return buckets;
}

}  // namespace echelon
