// SPDX-License-Identifier: Apache-2.0
#include "cuda/nccl.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";

// The functions of the library that are used, by name.
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
  if (!function && problem.empty())
    problem = fmt::format("{} does not have {}; NCCL 2.13 or later is needed", kLibrary, name);
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
  throw ConfigError(fmt::format("exchange.algorithm 'nccl' sums gradients of f32 and f64, not of {}", name_of(dtype)));
}

// Broadcast by rank 0: NCCL's id, or the reason why there is none.
struct Invitation {
  ncclUniqueId id = {};
  std::array<char, 512> problem = {};
};

// One rank's end of the communicator. `look` may run on any thread that waits for the device.
class Communicator {
 public:
  Communicator(std::shared_ptr<Card> card, const DeviceGroup& group, const ncclUniqueId& id) : card_(std::move(card)) {
    check(library().init_rank(&comm_, group.ranks, id, group.rank), "ncclCommInitRank");
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() {
    if (comm_) library().destroy(comm_);
  }

  void sum(DType dtype, void* data, std::size_t n, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    require(library().all_reduce(data, data, n, type_of(dtype), ncclSum, comm_, stream), "ncclAllReduce");
  }
  // Throws if a previously enqueued sum has failed.
  void look() {
    const std::lock_guard lock(mutex_);
    if (!comm_) return;
    ncclResult_t status = ncclSuccess;
    require(library().async_error(comm_, &status), "ncclCommGetAsyncError");
    require(status, "an enqueued sum");
  }
  // Ends NCCL's kernels, so that nothing waits for peers that may be gone.
  void abort() {
    if (comm_) library().abort(std::exchange(comm_, nullptr));
  }

 private:
  void require(ncclResult_t status, const char* call) {
    if (status != ncclSuccess && status != ncclInProgress) give_up(words(status, call, comm_));
  }
  // A failed sum leaves gradients undefined: nothing may be computed from them.
  [[noreturn]] void give_up(const std::string& why) {
    card_->fail(why);
    abort();
    throw EnvironmentError(why);
  }

  std::shared_ptr<Card> card_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
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
    if (invitation.problem[0] != 0)
      throw EnvironmentError(fmt::format("rank 0 cannot start NCCL: {}", invitation.problem.data()));
    stream_ = make_stream();
    ready_ = make_event();
    for (std::size_t slot = 0; slot < group.slots; ++slot) done_.push_back(make_event());
    comm_ = std::make_shared<Communicator>(context.shared_card(), group, invitation.id);
    context.card().watch([comm = comm_] { comm->look(); });
  }
  NcclAllreduce(const NcclAllreduce&) = delete;
  NcclAllreduce& operator=(const NcclAllreduce&) = delete;

  // Does not wait for a communicator whose peers may be gone.
  ~NcclAllreduce() override {
    cudaSetDevice(context_.index());
    context_.card().watch(nullptr);
    if (std::uncaught_exceptions() > 0) comm_->abort();
    cudaStreamSynchronize(stream_.get());
  }

  void sum(std::size_t slot, DType dtype, void* data, std::size_t n) override {
    context_.use();
    comm_->look();
    ECHELON_CUDA(cudaEventRecord(ready_.get(), context_.stream()));
    ECHELON_CUDA(cudaStreamWaitEvent(stream_.get(), ready_.get(), 0));
    comm_->sum(dtype, data, n, stream_.get());
    ECHELON_CUDA(cudaEventRecord(done_.at(slot).get(), stream_.get()));
  }

  void join(std::size_t slot) override {
    context_.use();
    comm_->look();
    ECHELON_CUDA(cudaStreamWaitEvent(context_.stream(), done_.at(slot).get(), 0));
  }

  // Called while spans end, where nothing may be thrown: a card that fails here is marked, and no longer sums.
  bool done(std::size_t slot) const override {
    try {
      ECHELON_CUDA(cudaSetDevice(context_.index()));
      return ECHELON_CUDA_PASSED(cudaEventQuery(done_.at(slot).get()));
    } catch (const Error& error) {
      context_.card().fail(error.what());
      return true;
    }
  }

 private:
  const Context& context_;
  OwnedStream stream_;  // separate from the compute stream
  OwnedEvent ready_;
  std::vector<OwnedEvent> done_;  // by slot
  std::shared_ptr<Communicator> comm_;
};

}  // namespace

std::string nccl_problem() { return library().problem; }

std::unique_ptr<DeviceAllreduce> make_nccl(const Context& context, const DeviceGroup& group) {
  if (!library().problem.empty()) throw EnvironmentError(library().problem);
  return std::make_unique<NcclAllreduce>(context, group);
}

}  // namespace echelon::cuda
