// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_calls/standin/book.hpp"

#include <new>

#include "tests/cuda_calls/standin/call.hpp"

namespace echelon::calls {

void Book::begin(const Settings& settings) {
  const std::lock_guard guard(lock_);
  settings_ = settings;
  failure_ = {};
  injected_.reset();
  lost_ = 0;
  broken_.clear();
  counts_.clear();
  sites_.clear();
  calls_ = hidden_waits_ = idle_waits_ = 0;
  this_thread() = {};
  objects_.clear();
  for (const auto& [begin, block] : blocks_)
    ::operator delete (reinterpret_cast<void*>(block.begin), std::align_val_t{kBlockAlignment});
  blocks_.clear();
}

void Book::fail(const Failure& failure) {
  const std::lock_guard guard(lock_);
  failure_ = failure;
}

std::optional<Injected> Book::injected() const {
  const std::lock_guard guard(lock_);
  return injected_;
}

std::vector<std::string> Book::broken_rules() const {
  const std::lock_guard guard(lock_);
  return {broken_.begin(), broken_.end()};
}

std::vector<std::string> Book::alive() const {
  const std::lock_guard guard(lock_);
  std::map<std::string, int> kinds;
  for (const auto& [handle, object] : objects_)
    if (object->alive) ++kinds[fmt::format("{} of {}", object->kind, object->by)];
  for (const auto& [begin, block] : blocks_)
    ++kinds[fmt::format("{} memory of {} bytes",
                        block.where == Where::device   ? "device"
                        : block.where == Where::pinned ? "pinned"
                                                       : "imported",
                        block.bytes)];
  std::vector<std::string> all;
  for (const auto& [kind, count] : kinds) all.push_back(fmt::format("{} x {}", count, kind));
  return all;
}

std::map<std::string, std::int64_t> Book::counts() const {
  const std::lock_guard guard(lock_);
  return counts_;
}

std::vector<std::string> Book::never_called() const {
  const std::lock_guard guard(lock_);
  std::vector<std::string> all;
#define X(name, act) \
  if (ever_called_.count(#name) == 0) all.emplace_back(#name);
  ECHELON_CUDA_CALLS(X)
#undef X
  return all;
}

std::string Book::left_error() const {
  const cudaError_t error = this_thread().last_error;
  return error == cudaSuccess ? "" : text_of(error);
}

std::int64_t Book::hidden_waits() const {
  const std::lock_guard guard(lock_);
  return hidden_waits_;
}

std::int64_t Book::idle_waits() const {
  const std::lock_guard guard(lock_);
  return idle_waits_;
}

std::int64_t Book::calls() const {
  const std::lock_guard guard(lock_);
  return calls_;
}

std::vector<Site> Book::sites() const {
  const std::lock_guard guard(lock_);
  std::vector<Site> all;
  for (const auto& [place, numbers] : sites_) all.push_back({place.first, place.second, numbers});
  return all;
}

bool Book::enter(const ListedCall& call, const void* from) {
  if (call.act != Act::sure) ++calls_;  // some of those come once per process
  ever_called_.insert(call.name);
  const std::int64_t nth = ++counts_[call.name];
  if (call.act != Act::sure) sites_[{call.name, from}].push_back(calls_);
  if (injected_) {
    const bool works = call.act == Act::make || call.act == Act::work;
    if (works && injected_in_ == std::this_thread::get_id()) injected_->work_after.emplace_back(call.name);
    return false;
  }
  if (call.act == Act::sure) return false;
  return failure_.number == calls_ || (failure_.call == call.name && failure_.nth == nth);
}

void Book::note_injected(const std::string& call, const std::string& text) {
  injected_ = Injected{.call = call, .text = text, .work_after = {}};
  injected_in_ = std::this_thread::get_id();
  if (failure_.sticky) lost_ = failure_.status;
}

Object* Book::keep(std::shared_ptr<Object> object) {
  Object* handle = object.get();
  objects_[handle] = std::move(object);
  return handle;
}

Object* Book::find(const void* handle) const {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : found->second.get();
}

std::vector<Object*> Book::objects() const {
  std::vector<Object*> all;
  for (const auto& [handle, object] : objects_) all.push_back(object.get());
  return all;
}

void Book::add(const Block& block) { blocks_[block.begin] = block; }

const Block* Book::block_at(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  const Block& block = std::prev(next)->second;
  return at < block.end() ? &block : nullptr;
}

std::size_t Book::taken_bytes(int device) const {
  std::size_t bytes = 0;
  for (const auto& [begin, block] : blocks_)
    if (block.where == Where::device && block.device == device) bytes += block.bytes;
  return bytes;
}

// Never destroyed: the kernels' files unregister at the very end of the process.
Book& book() {
  static Book& book = *new Book;
  return book;
}

}  // namespace echelon::calls

extern "C" echelon::calls::Ledger& echelon_cuda_calls_ledger() { return echelon::calls::book(); }
