// SPDX-License-Identifier: Apache-2.0
// The interface of the stand-in for tests, across the border of libechelon_cuda.so: which calls were made from where,
// which rules of the libraries were broken, what is still alive; and the request that the n-th call fails.
//
// There is one ledger per process; any thread may call its functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace echelon::calls {

struct Settings {
  int gpus = 2;
  std::size_t card_bytes = std::size_t{16} << 30;  // cudaMalloc fails beyond it
  bool late = false;            // enqueued work runs only when somebody waits for it, otherwise when it is enqueued
  std::size_t dnn_version = 0;  // the value of cudnnGetVersion; 0: that of the headers
  std::uint64_t refused = 0;    // bit a of 16 for each direction of a convolution: algorithm a supports no shape
  bool refused_late = false;    // these are offered, and refused at run time
};

// One place in cuda/ that makes a call.
struct Site {
  std::string call;
  const void* from = nullptr;         // return address
  std::vector<std::int64_t> numbers;  // numbers of its calls, counted from 1 over all calls that can fail
};

// The error that a call returns instead of doing its work (Act::end: after it).
struct Failure {
  std::int64_t number = 0;  // number of the call, counted from 1 since `begin` over all calls that can fail; 0: none
  std::string call = {};    // otherwise the `nth` call of this name
  std::int64_t nth = 1;
  int status = 0;       // error code of the call's library; 0: chosen by `memory`
  bool memory = false;  // its out-of-memory error, otherwise an execution error
  bool sticky = false;  // the card's context is lost: every later call fails too
};

struct Injected {
  std::string call;
  std::string text;                     // the library's text for the error
  std::vector<std::string> work_after;  // later calls of Act::make, work and wait in this thread
};

class Ledger {
 public:
  // Forgets everything and frees what is still alive: nobody may use it any more.
  virtual void begin(const Settings& settings) = 0;
  virtual void fail(const Failure& failure) = 0;

  virtual std::optional<Injected> injected() const = 0;
  virtual std::vector<std::string> broken_rules() const = 0;  // the first of each call and rule
  virtual std::vector<std::string> alive() const = 0;         // memory and objects that were not returned
  // The error that cudaGetLastError would return to this thread, and that the next launch would report. "" if none.
  virtual std::string left_error() const = 0;
  virtual std::map<std::string, std::int64_t> counts() const = 0;  // by call
  virtual std::int64_t hidden_waits() const = 0;                   // in copies of pageable memory and in cudaFree
  virtual std::int64_t idle_waits() const = 0;                     // for events that were never recorded
  virtual std::vector<Site> sites() const = 0;
  virtual std::int64_t calls() const = 0;  // number of calls that can fail
  // Calls that the stand-in has and that were not made since the process began.
  virtual std::vector<std::string> never_called() const = 0;

 protected:
  ~Ledger() = default;
};

using LedgerFunction = Ledger&();
inline constexpr const char* kLedgerSymbol = "echelon_cuda_calls_ledger";

}  // namespace echelon::calls
