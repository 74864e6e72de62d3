#include "cuda/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <cstdio>
#include <exception>
#include <vector>

#include "base/error.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";

// What is used of the library, by name.
struct Nccl {
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  std::string problem;
};

template <class Function>
void find(void* handle, const char* name, Function& function, std::string& problem) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (!function && problem.empty()) problem = fmt::format("{} has no {}: NCCL 2.13 or later is needed", kLibrary, name);
}

Nccl load() {
  Nccl nccl;
  void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    nccl.problem = fmt::format("NCCL cannot be loaded: {}", why ? why : kLibrary);
    return nccl;
  }
  find(handle, "ncclGetErrorString", nccl.error_string, nccl.problem);
  find(handle, "ncclGetLastError", nccl.last_error, nccl.problem);
  find(handle, "ncclGetUniqueId", nccl.unique_id, nccl.problem);
  find(handle, "ncclCommInitRank", nccl.init_rank, nccl.problem);
  find(handle, "ncclCommGetAsyncError", nccl.async_error, nccl.problem);
  find(handle, "ncclAllReduce", nccl.all_reduce, nccl.problem);
  find(handle, "ncclCommDestroy", nccl.destroy, nccl.problem);
  find(handle, "ncclCommAbort", nccl.abort, nccl.problem);
  return nccl;
}

const Nccl& library() {
  static const Nccl loaded = load();
  return loaded;
}

std::string words(ncclResult_t status, const char* call, ncclComm_t comm) {
  const Nccl& nccl = library();
  const char* more = nccl.last_error(comm);
  return fmt::format("NCCL failed: {} in {}{}{}", nccl.error_string(status), call, more && *more ? ": " : "",
                     more ? more : "");
}

void check(ncclResult_t status, const char* call, ncclComm_t comm = nullptr) {
  if (status != ncclSuccess) throw EnvironmentError(words(status, call, comm));
}

ncclDataType_t type_of(DType dtype) {
  if (dtype == DType::f32) return ncclFloat32;
  if (dtype == DType::f64) return ncclFloat64;
  throw ConfigError(fmt::format("nccl sums gradients of f32 and f64, not of {}", name_of(dtype)));
}

// What rank 0 broadcasts: NCCL's id, or why there is none.
struct Invitation {
  ncclUniqueId id = {};
  std::array<char, 512> problem = {};
};

class NcclAllreduce final : public DeviceAllreduce {
 public:
  NcclAllreduce(const Context& context, const DeviceGroup& group) : context_(context) {
    context.use();
    Invitation invitation;
    if (group.rank == 0)
      if (const ncclResult_t status = library().unique_id(&invitation.id); status != ncclSuccess)
        std::snprintf(invitation.problem.data(), invitation.problem.size(), "%s",
                      words(status, "ncclGetUniqueId", nullptr).c_str());
    group.broadcast(&invitation, sizeof invitation);
    if (invitation.problem[0] != 0) throw EnvironmentError(fmt::format("rank 0: {}", invitation.problem.data()));
    check(library().init_rank(&comm_, group.ranks, invitation.id, group.rank), "ncclCommInitRank");
    ECHELON_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ready_ = make_event();
  }
  NcclAllreduce(const NcclAllreduce&) = delete;
  NcclAllreduce& operator=(const NcclAllreduce&) = delete;

  // A communicator whose peers may be gone is not waited for.
  ~NcclAllreduce() override {
    cudaSetDevice(context_.index());
    const bool failed = failed_ || std::uncaught_exceptions() > 0;
    if (comm_ && failed) library().abort(comm_);
    if (stream_) cudaStreamSynchronize(stream_);
    if (comm_ && !failed) library().destroy(comm_);
    for (cudaEvent_t done : done_)
      if (done) cudaEventDestroy(done);
    if (ready_) cudaEventDestroy(ready_);
    if (stream_) cudaStreamDestroy(stream_);
  }

  void sum(std::size_t slot, DType dtype, void* data, std::size_t n) override {
    context_.use();
    look_for_errors();
    if (slot >= done_.size()) done_.resize(slot + 1, nullptr);
    if (!done_[slot]) done_[slot] = make_event();
    ECHELON_CUDA(cudaEventRecord(ready_, context_.stream()));
    ECHELON_CUDA(cudaStreamWaitEvent(stream_, ready_, 0));
    check(library().all_reduce(data, data, n, type_of(dtype), ncclSum, comm_, stream_), "ncclAllReduce", comm_);
    ECHELON_CUDA(cudaEventRecord(done_[slot], stream_));
  }

  void join(std::size_t slot) override {
    context_.use();
    look_for_errors();
    ECHELON_CUDA(cudaStreamWaitEvent(context_.stream(), done_.at(slot), 0));
  }

 private:
  static cudaEvent_t make_event() {
    cudaEvent_t event = nullptr;
    ECHELON_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
  }

  // What went wrong in sums that were enqueued before.
  void look_for_errors() {
    ncclResult_t status = ncclSuccess;
    check(library().async_error(comm_, &status), "ncclCommGetAsyncError", comm_);
    if (status == ncclSuccess || status == ncclInProgress) return;
    failed_ = true;
    check(status, "a sum", comm_);
  }

  const Context& context_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;  // beside the compute stream
  cudaEvent_t ready_ = nullptr;
  std::vector<cudaEvent_t> done_;  // by slot
  bool failed_ = false;
};

}  // namespace

std::string nccl_problem() { return library().problem; }

std::unique_ptr<DeviceAllreduce> make_nccl(const Context& context, const DeviceGroup& group) {
  if (!library().problem.empty()) throw EnvironmentError(library().problem);
  return std::make_unique<NcclAllreduce>(context, group);
}

}  // namespace echelon::cuda
