// SPDX-License-Identifier: Apache-2.0
// One call of a library: it is counted, made to fail on demand, and checked against the library's rules.
//
//   cudaError_t cudaFreeHost(void* data) {
//     STAND_IN(cudaError_t);                     // named `call`; returns here if this call must fail
//     DEMAND(cudaErrorInvalidValue, data, ..)    // a broken rule is noted, and the library's error returned
//     return call.result(cudaSuccess);
//   }
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda_calls/standin/book.hpp"

namespace echelon::calls {

struct Stream;

// State of the calling thread.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  Stream* capturing = nullptr;  // the stream whose capture this thread has begun
};
ThreadState& this_thread();

// A piece of memory that a call reads or writes.
struct Range {
  const void* data = nullptr;
  std::size_t bytes = 0;
  const char* name = "";
};

template <class Status>
struct Errors;
template <>
struct Errors<cudaError_t> {
  static constexpr cudaError_t execution = cudaErrorUnknown, memory = cudaErrorMemoryAllocation;
};
template <>
struct Errors<cudnnStatus_t> {
  static constexpr cudnnStatus_t execution = CUDNN_STATUS_EXECUTION_FAILED,
                                 memory = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
};
template <>
struct Errors<cublasStatus_t> {
  static constexpr cublasStatus_t execution = CUBLAS_STATUS_EXECUTION_FAILED, memory = CUBLAS_STATUS_ALLOC_FAILED;
};
template <>
struct Errors<ncclResult_t> {
  static constexpr ncclResult_t execution = ncclSystemError, memory = ncclSystemError;
};

// The library's own text for an error.
std::string text_of(cudaError_t status);
std::string text_of(cudnnStatus_t status);
std::string text_of(cublasStatus_t status);
std::string text_of(ncclResult_t status);

class Call {
 public:
  Call(const char* name, const void* from);

  const char* name() const { return listed_.name; }

  // The error with which this call must fail; none: it goes on.
  template <class Status>
  std::optional<Status> failure() const {
    if (fails_) {
      const Failure& wanted = book().failure();
      const Status status = wanted.status != 0 ? static_cast<Status>(wanted.status)
                            : wanted.memory    ? Errors<Status>::memory
                                               : Errors<Status>::execution;
      book().note_injected(name(), text_of(status));
      return status;
    }
    if (!lost_) return {};
    if constexpr (std::is_same_v<Status, cudaError_t>) return static_cast<cudaError_t>(book().lost());
    return Errors<Status>::execution;
  }

  // Returns the result of the call. CUDA's runtime keeps an error for cudaGetLastError.
  template <class Status>
  Status result(Status status) const {
    if constexpr (std::is_same_v<Status, cudaError_t>)
      if (status != cudaSuccess) this_thread().last_error = status;
    return status;
  }
  // Returns the result of a call of Act::end after it has done its work.
  template <class Status>
  Status ended(Status status) const {
    return result(failure<Status>().value_or(status));
  }

  template <class... Words>
  bool demand(bool holds, fmt::format_string<Words...> rule, Words&&... words) const {
    if (!holds) book().broken(fmt::format("{}: {}", name(), fmt::format(rule, std::forward<Words>(words)...)));
    return holds;
  }

  // A new object of the current device.
  template <class T>
  T* make(const char* kind) const {
    auto object = std::make_shared<T>();
    object->kind = kind;
    object->device = this_thread().device;
    object->by = name();
    return static_cast<T*>(book().keep(std::move(object)));
  }
  // Returns the object behind a handle; null (and a broken rule) if there is none of this kind, or if it is destroyed.
  template <class T, class Handle>
  T* find(Handle handle, const char* kind) const {
    Object* object = handle ? book().find(static_cast<const void*>(handle)) : nullptr;
    if (!demand(object != nullptr, "no {}: {}", kind, handle ? "a handle that was never made" : "null")) return nullptr;
    if (!demand(object->kind == kind, "a {} given as a {}", object->kind, kind)) return nullptr;
    if (!demand(object->alive, "a {} that is destroyed", kind)) return nullptr;
    return static_cast<T*>(object);
  }
  // The same for an object that the call destroys.
  template <class T, class Handle>
  T* take(Handle handle, const char* kind) const {
    T* object = find<T>(handle, kind);
    if (object) object->alive = false;
    return object;
  }
  // cuDNN and cuBLAS: a handle serves the device that was current when it was made ("cudnnCreate", "cublasCreate").
  bool on_device(const Object& object) const {
    return demand(object.device == this_thread().device, "a {} of device {} while device {} is current", object.kind,
                  object.device, this_thread().device);
  }

  // Lets other threads call meanwhile; returns false if the condition does not become true in time.
  template <class Condition>
  bool wait(std::condition_variable_any& changed, std::chrono::seconds limit, Condition condition) {
    return changed.wait_for(lock_, limit, condition);
  }

  // Whether device memory holds the whole range, aligned to `alignment`. `data` may be null only if `bytes` is 0.
  bool in_device(const Range& range, std::size_t alignment = 1) const;
  // Whether the range that a call writes does not overlap the other ranges that it uses.
  bool apart(const Range& written, const std::vector<Range>& others) const;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
  ListedCall listed_;
  bool fails_ = false, lost_ = false;
};

// Returns an object as the handle type of the library's header.
template <class Handle>
Handle handle_of(Object* object) {
  return reinterpret_cast<Handle>(object);
}

}  // namespace echelon::calls

#define STAND_IN_END ::echelon::calls::Call call(__func__, __builtin_return_address(0))
#define STAND_IN(Status) \
  STAND_IN_END;          \
  if (const auto failed_ = call.failure<Status>()) return call.result(*failed_)
#define DEMAND(status, ...) \
  if (!call.demand(__VA_ARGS__)) return call.result(status)
