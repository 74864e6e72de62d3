// SPDX-License-Identifier: Apache-2.0
// Memory and copies: CUDA Runtime API 13.0, "Memory Management", "API synchronization behavior", "Device Management"
// (cudaIpc*).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {
namespace {

// The memory that kernels would write and the host reads (sums, losses) is small, and is zeroed.
constexpr std::size_t kZeroed = 1 << 20;

void* take(std::size_t bytes, Where where) {
  void* data = ::operator new (bytes, std::align_val_t{kBlockAlignment});
  std::memset(data, 0, std::min(bytes, kZeroed));
  book().add({.begin = reinterpret_cast<std::uintptr_t>(data),
              .bytes = bytes,
              .where = where,
              .device = this_thread().device});
  return data;
}

void give(void* data) {
  book().remove(reinterpret_cast<std::uintptr_t>(data));
  ::operator delete (data, std::align_val_t{kBlockAlignment});
}

// The block of this kind that begins at `data`.
const Block* block_of(const Call& call, const void* data, Where where) {
  const Block* block = book().block_at(data);
  const bool whole = block && block->begin == reinterpret_cast<std::uintptr_t>(data) && block->where == where;
  call.demand(whole, "{} is not what an allocation of this sort returned, or is freed", block ? "a place" : "memory");
  return whole ? block : nullptr;
}

// For the host end of a copy: whether it is pinned, in which case it must be large enough.
bool pinned(const Call& call, const void* data, std::size_t bytes, const char* name) {
  const Block* block = book().block_at(data);
  if (!block) return false;
  if (!call.demand(block->where == Where::pinned, "{} is in device memory", name)) return false;
  call.demand(reinterpret_cast<std::uintptr_t>(data) + bytes <= block->end(), "{} ends behind its pinned block", name);
  return true;
}

cudaMemcpyKind kind_of(const void* dst, const void* src) {
  const auto on_device = [](const void* data) {
    const Block* block = book().block_at(data);
    return block && block->where != Where::pinned;
  };
  if (on_device(dst)) return on_device(src) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return on_device(src) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

}  // namespace
}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  STAND_IN(cudaError_t);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  DEMAND(cudaErrorInvalidValue, data && bytes > 0, "no bytes");  // the manual does not mention this case
  const std::size_t taken = book().taken_bytes(this_thread().device);
  if (bytes > book().settings().card_bytes - std::min(taken, book().settings().card_bytes))
    return call.result(cudaErrorMemoryAllocation);
  *data = take(bytes, Where::device);
  return call.result(cudaSuccess);
}

// Waits for the device; "if devPtr is 0, no operation is performed".
cudaError_t cudaFree(void* data) {
  STAND_IN_END;
  if (!outside_capture(call)) return call.ended(cudaErrorStreamCaptureUnsupported);
  if (!data) return call.ended(cudaSuccess);
  const Block* block = block_of(call, data, Where::device);
  if (!block) return call.ended(cudaErrorInvalidValue);
  for (Object* object : book().objects())
    if (object->alive && object->kind == "cuBLAS handle" && object->uses == data)
      call.demand(false, "the workspace of a cuBLAS handle that is alive");
  for (Object* object : book().objects())
    // "Calling cudaFree on an exported memory region before calling cudaIpcCloseMemHandle in the importing context
    // will result in undefined behavior" (cudaIpcGetMemHandle).
    call.demand(!(object->alive && object->kind == "import" && object->uses == data), "memory that is still imported");
  book().hidden_wait();
  run_device(block->device);
  give(data);
  return call.ended(cudaSuccess);
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned flags) {
  STAND_IN(cudaError_t);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  DEMAND(cudaErrorInvalidValue, data && bytes > 0, "no bytes");
  DEMAND(cudaErrorInvalidValue, flags == cudaHostAllocDefault, "flags {}", flags);
  *data = take(bytes, Where::pinned);
  return call.result(cudaSuccess);
}

// No page says that it waits for copies in flight, so the caller must have waited.
cudaError_t cudaFreeHost(void* data) {
  STAND_IN_END;
  if (!outside_capture(call)) return call.ended(cudaErrorStreamCaptureUnsupported);
  if (!data) return call.ended(cudaSuccess);
  if (!block_of(call, data, Where::pinned)) return call.ended(cudaErrorInvalidValue);
  give(data);
  return call.ended(cudaSuccess);
}

// The stream may be of another device (Programming Guide, "Stream and Event Behavior").
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  DEMAND(cudaErrorInvalidValue, dst && src && bytes > 0, "null or no bytes");
  const cudaMemcpyKind true_kind = kind_of(dst, src);
  // "Calling cudaMemcpyAsync() with dst and src pointers that do not match the direction of the copy results in an
  // undefined behavior"; cudaMemcpyDefault infers it.
  DEMAND(cudaErrorInvalidMemcpyDirection, kind == cudaMemcpyDefault || kind == true_kind,
         "direction {}, where it is {}", static_cast<int>(kind), static_cast<int>(true_kind));
  DEMAND(cudaErrorInvalidValue, true_kind != cudaMemcpyHostToHost, "neither end is in device memory");
  const Range to{dst, bytes, "the target"}, from{src, bytes, "the source"};
  const bool down = true_kind == cudaMemcpyDeviceToHost, up = true_kind == cudaMemcpyHostToDevice;
  if ((!down && !call.in_device(to)) || (!up && !call.in_device(from)) || !call.apart(to, {from}))
    return call.result(cudaErrorInvalidValue);
  const bool waits =
      (down && !pinned(call, dst, bytes, "the target")) || (up && !pinned(call, src, bytes, "the source"));
  // "If pageable memory must first be staged to pinned memory, the driver may synchronize with the stream".
  if (waits && !outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  std::vector<Range> kept;
  if (!down || !waits) kept.push_back(to);
  if (!up || !waits) kept.push_back(from);
  enqueue_on(call, *stream, kept, [from, dst] { std::memcpy(dst, from.data, from.bytes); });
  if (waits) {
    book().hidden_wait();
    run_until(*stream, stream->enqueued);
  }
  return call.result(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t handle) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  const Range to{dst, bytes, "the target"};
  if (!call.demand(bytes > 0, "no bytes") || !call.in_device(to)) return call.result(cudaErrorInvalidValue);
  enqueue_on(call, *stream, {to}, [to, dst, value] { std::memset(dst, value, to.bytes); });
  return call.result(cudaSuccess);
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidValue, free_bytes && total_bytes, "null");
  *total_bytes = book().settings().card_bytes;
  *free_bytes = *total_bytes - std::min(*total_bytes, book().taken_bytes(this_thread().device));
  return call.result(cudaSuccess);
}

// "Base pointer to previously allocated device memory".
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* data) {
  STAND_IN(cudaError_t);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  const Block* block = block_of(call, data, Where::device);
  if (!block || !handle) return call.result(cudaErrorInvalidValue);
  *handle = {};
  std::memcpy(handle->reserved, &block->begin, sizeof block->begin);
  return call.result(cudaSuccess);
}

// The importing process has other addresses, so the stand-in returns other memory.
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned flags) {
  STAND_IN(cudaError_t);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  // "flags: must be specified as cudaIpcMemLazyEnablePeerAccess".
  DEMAND(cudaErrorInvalidValue, data && flags == cudaIpcMemLazyEnablePeerAccess, "flags {}", flags);
  std::uintptr_t begin = 0;
  std::memcpy(&begin, handle.reserved, sizeof begin);
  const Block* block = block_of(call, reinterpret_cast<const void*>(begin), Where::device);
  if (!block) return call.result(cudaErrorInvalidResourceHandle);
  auto* import = call.make<Object>("import");
  import->uses = reinterpret_cast<const void*>(begin);
  *data = take(block->bytes, Where::imported);
  import->serves = *data;
  return call.result(cudaSuccess);
}

cudaError_t cudaIpcCloseMemHandle(void* data) {
  STAND_IN_END;
  if (!block_of(call, data, Where::imported)) return call.ended(cudaErrorInvalidValue);
  for (Object* object : book().objects())
    if (object->kind == "import" && object->serves == data) object->alive = false;
  give(data);
  return call.ended(cudaSuccess);
}

}  // extern "C"
