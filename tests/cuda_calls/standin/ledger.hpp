// What tests ask of the stand-in, across the border of libechelon_cuda.so: which calls were made from where, which rule
// of the libraries was broken, what is still alive; and that the n-th call is to fail.
//
// One ledger a process; its functions may be called from any thread.
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
  std::size_t card_bytes = std::size_t{16} << 30;  // cudaMalloc beyond it finds no memory
  bool late = false;            // enqueued work runs when somebody waits for it, else when it is enqueued
  std::size_t dnn_version = 0;  // what cudnnGetVersion returns; 0: the headers' own
  std::uint64_t refused = 0;    // bit a of 16 for each direction of a convolution: algorithm a supports no shape
  bool refused_late = false;    // these are offered, and refused when they are to run
};

// One place in cuda/ that makes a call.
struct Site {
  std::string call;
  const void* from = nullptr;         // return address
  std::vector<std::int64_t> numbers;  // of its calls, counted from 1 over all calls that can fail
};

// The error that a call returns instead of doing what it does (Act::end: after it).
struct Failure {
  std::int64_t number = 0;  // which one, counted since `begin` over all calls that can fail, from 1; 0: none
  std::string call = {};    // else the `nth` of this name
  std::int64_t nth = 1;
  int status = 0;       // of the call's library; 0: by `memory`
  bool memory = false;  // its error for missing memory, else one of execution
  bool sticky = false;  // the card's context is lost: every later call fails too
};

struct Injected {
  std::string call;
  std::string text;                     // the library's own text for the error
  std::vector<std::string> work_after;  // calls of Act::make, work and wait behind it, in this thread
};

class Ledger {
 public:
  // Forgets everything, and gives back what is alive still: nobody may use it any more.
  virtual void begin(const Settings& settings) = 0;
  virtual void fail(const Failure& failure) = 0;

  virtual std::optional<Injected> injected() const = 0;
  virtual std::vector<std::string> broken_rules() const = 0;  // the first of each call and rule
  virtual std::vector<std::string> alive() const = 0;         // memory and objects that were not given back
  // What cudaGetLastError would tell this thread: the next launch would be blamed for it. Empty where nothing.
  virtual std::string left_error() const = 0;
  virtual std::map<std::string, std::int64_t> counts() const = 0;  // by call
  virtual std::int64_t hidden_waits() const = 0;                   // in copies of pageable memory and in cudaFree
  virtual std::int64_t idle_waits() const = 0;                     // for events that were never recorded
  virtual std::vector<Site> sites() const = 0;
  virtual std::int64_t calls() const = 0;  // that can fail
  // Of those that the stand-in has, since the process began.
  virtual std::vector<std::string> never_called() const = 0;

 protected:
  ~Ledger() = default;
};

using LedgerFunction = Ledger&();
inline constexpr const char* kLedgerSymbol = "echelon_cuda_calls_ledger";

}  // namespace echelon::calls
