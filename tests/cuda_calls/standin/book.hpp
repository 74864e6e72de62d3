// SPDX-License-Identifier: Apache-2.0
// The stand-in's records: the memory and objects that exist, the calls that were made, the rules that were broken.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/cuda_calls/standin/ledger.hpp"
#include "tests/cuda_calls/standin/list.hpp"

namespace echelon::calls {

// An object that a library returns as a handle. It is not freed while the ledger is kept, so that uses after its end
// are detected.
struct Object {
  virtual ~Object() = default;
  std::string kind;  // "stream", "cuDNN handle", ..
  int device = 0;    // the current device when it was made
  std::string by;    // the call that made it
  bool alive = true;
  const void* uses = nullptr;    // memory that must outlive it
  const void* serves = nullptr;  // imported memory: the address of the original
};

inline constexpr std::size_t kBlockAlignment = 256;  // Programming Guide, "Device Memory Accesses"

enum class Where { device, pinned, imported };
struct Block {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  Where where = Where::device;
  int device = 0;
  std::uintptr_t end() const { return begin + bytes; }
};

struct ListedCall {
  const char* name;
  Act act;
};

class Book final : public Ledger {
 public:
  void begin(const Settings& settings) override;
  void fail(const Failure& failure) override;
  std::optional<Injected> injected() const override;
  std::vector<std::string> broken_rules() const override;
  std::vector<std::string> alive() const override;
  std::map<std::string, std::int64_t> counts() const override;
  std::string left_error() const override;
  std::int64_t hidden_waits() const override;
  std::int64_t idle_waits() const override;
  std::vector<Site> sites() const override;
  std::int64_t calls() const override;
  std::vector<std::string> never_called() const override;

  // The rest is used only by the stand-in, under the lock, which is held through every call.
  std::recursive_mutex& lock() const { return lock_; }
  const Settings& settings() const { return settings_; }

  // Counts the call; returns whether it is the one that must fail.
  bool enter(const ListedCall& call, const void* from);
  const Failure& failure() const { return failure_; }
  void note_injected(const std::string& call, const std::string& text);
  // The error of a lost context; 0: none.
  int lost() const { return lost_; }

  void broken(const std::string& rule) { broken_.insert(rule); }
  void hidden_wait() { ++hidden_waits_; }
  void idle_wait() { ++idle_waits_; }

  Object* keep(std::shared_ptr<Object> object);
  Object* find(const void* handle) const;
  std::vector<Object*> objects() const;

  void add(const Block& block);
  void remove(std::uintptr_t begin) { blocks_.erase(begin); }
  // The block that holds the address; null if none does.
  const Block* block_at(const void* address) const;
  std::size_t taken_bytes(int device) const;

 private:
  mutable std::recursive_mutex lock_;
  Settings settings_;
  Failure failure_;
  std::optional<Injected> injected_;
  std::thread::id injected_in_;
  int lost_ = 0;
  std::set<std::string> broken_;
  std::map<std::string, std::int64_t> counts_;
  std::set<std::string> ever_called_;
  std::map<std::pair<std::string, const void*>, std::vector<std::int64_t>> sites_;
  std::int64_t calls_ = 0, hidden_waits_ = 0, idle_waits_ = 0;
  std::map<std::uintptr_t, Block> blocks_;
  std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

Book& book();

}  // namespace echelon::calls
