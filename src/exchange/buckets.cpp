// SPDX-License-Identifier: Apache-2.0
#include "exchange/buckets.hpp"

#include "base/checksum.hpp"

namespace echelon::inline exchange {

std::vector<ArenaRange> make_buckets(const ParameterSet& parameters, std::size_t elem_bytes, double bucket_bytes,
                                     bool sparse_apart) {
  std::vector<ArenaRange> buckets;
  ArenaRange open{parameters.elems(), parameters.elems()};
  for (int i = parameters.size() - 1; i >= 0; --i) {
    const bool apart = sparse_apart && parameters[i].sparse;
    if (!apart) open.begin = parameters[i].begin;
    const bool ends = i > 0 && parameters[i - 1].shared() != parameters[i].shared();
    const bool full = ends || static_cast<double>(open.elems()) * static_cast<double>(elem_bytes) >= bucket_bytes;
    if (!full && !apart && i > 0) continue;
    if (open.elems() > 0) buckets.push_back(open);
    open = {parameters[i].begin, parameters[i].begin};
  }
  return buckets;
}

std::uint64_t bucket_key(const ParameterSet& parameters, ArenaRange bucket) {
  for (const Parameter& parameter : parameters.all())
    if (parameter.begin == bucket.begin) return checksum64(parameter.name);
  return 0;
}

}  // namespace echelon::inline exchange
