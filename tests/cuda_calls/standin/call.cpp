// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_calls/standin/call.hpp"

#include <algorithm>
#include <cstring>

namespace echelon::calls {
namespace {

constexpr ListedCall kListed[] = {
#define X(name, act) {#name, Act::act},
    ECHELON_CUDA_CALLS(X)
#undef X
};

ListedCall listed(const char* name) {
  for (const ListedCall& call : kListed)
    if (std::strcmp(call.name, name) == 0) return call;
  book().broken(fmt::format("{} is missing in list.hpp", name));
  return {name, Act::sure};
}

bool overlap(const Range& a, const Range& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.data), second = reinterpret_cast<std::uintptr_t>(b.data);
  return a.bytes > 0 && b.bytes > 0 && first < second + b.bytes && second < first + a.bytes;
}

}  // namespace

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Call::Call(const char* name, const void* from) : lock_(book().lock()), listed_(listed(name)) {
  fails_ = book().enter(listed_, from);
  lost_ = book().lost() != 0 && listed_.act != Act::sure;
}

bool Call::in_device(const Range& range, std::size_t alignment) const {
  if (range.bytes == 0) return true;
  if (!demand(range.data != nullptr, "{} is null", range.name)) return false;
  const Block* block = book().block_at(range.data);
  if (!demand(block != nullptr, "{} is in no memory that is allocated", range.name)) return false;
  if (!demand(block->where != Where::pinned, "{} is in host memory", range.name)) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data);
  return demand(begin + range.bytes <= block->end(), "{} of {} bytes ends {} bytes behind its block", range.name,
                range.bytes, begin + range.bytes - block->end()) &&
         demand(begin % alignment == 0, "{} is not aligned to {} bytes", range.name, alignment);
}

bool Call::apart(const Range& written, const std::vector<Range>& others) const {
  return std::all_of(others.begin(), others.end(), [&](const Range& other) {
    return demand(!overlap(written, other), "{} and {} overlap", written.name, other.name);
  });
}

}  // namespace echelon::calls
