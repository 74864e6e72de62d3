#include "exchange/buckets.hpp"

namespace echelon {

std::vector<ArenaRange> make_buckets(const ParameterSet& parameters, std::size_t elem_bytes, double bucket_bytes,
                                     bool sparse_apart) {
  std::vector<ArenaRange> buckets;
  ArenaRange open{parameters.elems(), parameters.elems()};
  for (int i = parameters.size() - 1; i >= 0; --i) {
    const bool apart = sparse_apart && parameters[i].sparse;
    if (!apart) open.begin = parameters[i].begin;
    const bool full = static_cast<double>(open.elems()) * static_cast<double>(elem_bytes) >= bucket_bytes;
    if (!full && !apart && i > 0) continue;
    if (open.elems() > 0) buckets.push_back(open);
    open = {parameters[i].begin, parameters[i].begin};
  }
  return buckets;
}

}  // namespace echelon
