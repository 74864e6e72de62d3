// SPDX-License-Identifier: Apache-2.0
// libnccl.so.2 of the stand-in, in a separate file like the library itself: NCCL User Guide 2.28, "NCCL API".
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <set>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {
namespace {

constexpr const char* kComm = "communicator";
constexpr std::chrono::seconds kMeeting{20};

// The ranks that came with one id.
struct Group {
  int ranks = 0;
  bool failed = false;
  std::map<int, int> devices;                          // by rank
  std::map<int, std::vector<std::string>> operations;  // by rank, in order
};

struct Comm : Object {
  std::shared_ptr<Group> group;
  int rank = 0;
};

struct Meetings {
  std::map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::condition_variable_any came;
  std::uint64_t ids = 0;
};
Meetings& meetings() {
  static auto& all = *new Meetings;
  return all;
}

struct ErrorText {
  ncclResult_t status;
  const char* text;
};
constexpr ErrorText kTexts[] = {{ncclSuccess, "no error"},
                                {ncclUnhandledCudaError, "unhandled cuda error"},
                                {ncclSystemError, "unhandled system error"},
                                {ncclInternalError, "internal error"},
                                {ncclInvalidArgument, "invalid argument"},
                                {ncclInvalidUsage, "invalid usage"},
                                {ncclRemoteError, "remote process exited or there was a network error"},
                                {ncclInProgress, "NCCL operation in progress"}};
const char* words(ncclResult_t status) {
  for (const ErrorText& known : kTexts)
    if (known.status == status) return known.text;
  return "unknown result code";
}

// All ranks make the same calls in the same order ("Collective Operations"): compares the calls that both have made.
void compare(const Call& call, const Comm& comm) {
  const std::vector<std::string>& mine = comm.group->operations[comm.rank];
  const std::size_t at = mine.size() - 1;
  for (const auto& [rank, theirs] : comm.group->operations)
    if (theirs.size() > at)
      call.demand(theirs[at] == mine[at], "rank {} sums {}, rank {} {}", comm.rank, mine[at], rank, theirs[at]);
}

}  // namespace

std::string text_of(ncclResult_t status) { return words(status); }

}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

const char* ncclGetErrorString(ncclResult_t status) {
  STAND_IN_END;
  return words(status);
}
const char* ncclGetLastError(ncclComm_t) {
  STAND_IN_END;
  return "(details of the stand-in)";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  STAND_IN(ncclResult_t);
  DEMAND(ncclInvalidArgument, id, "null");
  *id = {};
  const std::uint64_t number = ++meetings().ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

// Returns once all ranks have come; "rank must be between 0 and nranks-1 and unique within a communicator clique", and
// each must be on a different device.
ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  STAND_IN(ncclResult_t);
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  DEMAND(ncclInvalidArgument, out && number >= 1 && number <= meetings().ids, "an id that nobody made");
  std::shared_ptr<Group>& slot = meetings().groups[number];
  if (!slot) slot = std::make_shared<Group>();
  const std::shared_ptr<Group> group = slot;
  if (group->ranks == 0) group->ranks = ranks;
  DEMAND(ncclInvalidArgument, group->ranks == ranks && rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
  for (const auto& [other, device] : group->devices)
    DEMAND(ncclInvalidUsage, other != rank && device != this_thread().device, "ranks {} and {} on device {}", other,
           rank, device);
  group->devices[rank] = this_thread().device;
  meetings().came.notify_all();
  const bool all =
      call.wait(meetings().came, kMeeting, [&] { return static_cast<int>(group->devices.size()) == ranks; });
  DEMAND(ncclSystemError, all, "{} of {} ranks came", group->devices.size(), ranks);
  auto* comm = call.make<Comm>(kComm);
  comm->group = group;
  comm->rank = rank;
  *out = handle_of<ncclComm_t>(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* status) {
  STAND_IN(ncclResult_t);
  auto* comm = call.find<Comm>(handle, kComm);
  if (!comm || !status) return ncclInvalidArgument;
  *status = comm->group->failed ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t handle, cudaStream_t stream_handle) {
  STAND_IN(ncclResult_t);
  auto* comm = call.find<Comm>(handle, kComm);
  Stream* stream = stream_of(call, stream_handle);
  if (!comm || !stream) return ncclInvalidArgument;
  DEMAND(ncclInvalidUsage, comm->device == this_thread().device && stream->device == comm->device,
         "a communicator of device {}, a stream of {}, device {} is current", comm->device, stream->device,
         this_thread().device);
  DEMAND(ncclInvalidArgument, count > 0 && op == ncclSum && (type == ncclFloat32 || type == ncclFloat64),
         "{} values of type {}", count, static_cast<int>(type));
  const std::size_t size = type == ncclFloat64 ? 8 : 4;
  const Range out{to, count * size, "the sums"};
  // "In-place operation will happen if sendbuff == recvbuff"; else they must not overlap.
  if (!call.in_device(out, size) || !call.in_device({from, count * size, "the terms"}, size))
    return ncclInvalidArgument;
  if (from != to && !call.apart(out, {{from, count * size, "the terms"}})) return ncclInvalidArgument;
  comm->group->operations[comm->rank].push_back(fmt::format("{} values of type {}", count, static_cast<int>(type)));
  compare(call, *comm);
  enqueue_on(call, *stream, {out});
  return ncclSuccess;
}

// "ncclCommDestroy": called once, after the enqueued work; every rank has made the same number of calls by then.
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  STAND_IN_END;
  auto* comm = call.take<Comm>(handle, kComm);
  return call.ended(comm ? ncclSuccess : ncclInvalidArgument);
}

// Its peers notice it sooner or later ("ncclCommAbort", "Fault Tolerance").
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  STAND_IN_END;
  auto* comm = call.take<Comm>(handle, kComm);
  if (comm) comm->group->failed = true;
  return call.ended(comm ? ncclSuccess : ncclInvalidArgument);
}

}  // extern "C"
