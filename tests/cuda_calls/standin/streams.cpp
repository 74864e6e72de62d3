// SPDX-License-Identifier: Apache-2.0
// Streams, events, captures and graphs: CUDA Runtime API 13.0, "Stream Management", "Event Management", "Graph
// Management".
#include "tests/cuda_calls/standin/streams.hpp"

#include <utility>

namespace echelon::calls {

Stream* stream_of(const Call& call, cudaStream_t handle) {
  if (!call.demand(handle != nullptr, "the default stream, which waits for all others")) return nullptr;
  return call.find<Stream>(handle, kStream);
}

void run_until(Stream& stream, std::uint64_t until) {
  while (stream.done < until) {
    const Work work = std::move(stream.pending.front());
    stream.pending.pop_front();
    ++stream.done;
    if (work.other) run_until(*work.other, work.until);
    if (work.run) work.run();
  }
}

void enqueue(Stream& stream, Work work) {
  if (stream.capturing) {
    stream.captured.push_back(std::move(work));
    return;
  }
  stream.pending.push_back(std::move(work));
  ++stream.enqueued;
  if (!book().settings().late) run_until(stream, stream.enqueued);
}

void enqueue_on(const Call& call, Stream& stream, std::vector<Range> ranges, std::function<void()> run) {
  enqueue(stream, {.run = [name = call.name(), ranges = std::move(ranges), run = std::move(run)] {
            for (const Range& range : ranges) {
              if (range.bytes == 0) continue;
              const Block* block = book().block_at(range.data);
              if (block && reinterpret_cast<std::uintptr_t>(range.data) + range.bytes <= block->end()) continue;
              book().broken(fmt::format("{}: {} was freed before the stream came to it", name, range.name));
              return;
            }
            if (run) run();
          }});
}

void run_device(int device) {
  for (Object* object : book().objects())
    if (object->kind == kStream && object->device == device) {
      auto* stream = static_cast<Stream*>(object);
      run_until(*stream, stream->enqueued);
    }
}

bool outside_capture(const Call& call) {
  Stream* capturing = this_thread().capturing;
  if (capturing) capturing->invalid = true;
  return call.demand(!capturing, "called while this thread captures a stream");
}

}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidValue, stream && (flags == cudaStreamDefault || flags == cudaStreamNonBlocking), "flags {}",
         flags);
  // A blocking stream is ordered with the default stream's work.
  DEMAND(cudaErrorInvalidValue, flags == cudaStreamNonBlocking, "a stream that the default stream blocks");
  *stream = handle_of<cudaStream_t>(call.make<Stream>(kStream));
  return call.result(cudaSuccess);
}

// Returns at once; enqueued work still runs ("cudaStreamDestroy").
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  STAND_IN_END;
  auto* stream = call.take<Stream>(handle, kStream);
  if (!stream) return call.ended(cudaErrorInvalidResourceHandle);
  call.demand(!stream->capturing, "a stream that is being captured");
  run_until(*stream, stream->enqueued);
  return call.ended(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  run_until(*stream, stream->enqueued);
  return call.result(cudaSuccess);
}

// Behaves like cudaEventQuery.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  if (stream->done == stream->enqueued) return call.result(cudaSuccess);
  run_until(*stream, stream->done + 1);
  return cudaErrorNotReady;
}

// The stream and the event may be of different devices ("cudaStreamWaitEvent").
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  auto* event = call.find<EventObject>(event_handle, kEvent);
  if (!stream || !event) return call.result(cudaErrorInvalidResourceHandle);
  DEMAND(cudaErrorInvalidValue, flags == cudaEventWaitDefault, "flags {}", flags);
  // "If cudaEventRecord() has not been called on event, this call acts as if the record has already completed".
  if (!event->stream) {
    book().idle_wait();
    return call.result(cudaSuccess);
  }
  // A captured stream may depend only on captured events ("cudaErrorStreamCaptureIsolation").
  DEMAND(cudaErrorStreamCaptureIsolation, !stream->capturing && !event->stream->capturing,
         "a dependence into or out of a capture");
  enqueue(*stream, {.run = {}, .other = event->stream, .until = event->at});
  return call.result(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidValue,
         event && (flags & ~unsigned{cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess}) == 0,
         "flags {}", flags);
  auto* made = call.make<EventObject>(kEvent);
  made->timing = (flags & cudaEventDisableTiming) == 0;
  *event = handle_of<cudaEvent_t>(made);
  return call.result(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  STAND_IN_END;
  return call.ended(call.take<EventObject>(handle, kEvent) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  STAND_IN(cudaError_t);
  auto* event = call.find<EventObject>(handle, kEvent);
  Stream* stream = stream_of(call, stream_handle);
  if (!event || !stream) return call.result(cudaErrorInvalidResourceHandle);
  // "event and stream must be on the same CUDA device".
  DEMAND(cudaErrorInvalidResourceHandle, event->device == stream->device, "an event of device {}, a stream of {}",
         event->device, stream->device);
  event->stream = stream;
  event->at = stream->enqueued;
  return call.result(cudaSuccess);
}

// Each query lets one more piece of work run, so that polling ends.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  STAND_IN(cudaError_t);
  auto* event = call.find<EventObject>(handle, kEvent);
  if (!event) return call.result(cudaErrorInvalidResourceHandle);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  if (!event->stream) {
    book().idle_wait();
    return call.result(cudaSuccess);
  }
  if (event->stream->done >= event->at) return call.result(cudaSuccess);
  run_until(*event->stream, event->stream->done + 1);
  // "Not considered an error and therefore not reported by cudaGetLastError()" (Programming Guide, "Error Checking").
  return cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  STAND_IN(cudaError_t);
  auto* event = call.find<EventObject>(handle, kEvent);
  if (!event) return call.result(cudaErrorInvalidResourceHandle);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  if (event->stream)
    run_until(*event->stream, event->at);
  else
    book().idle_wait();  // the event was never recorded
  return call.result(cudaSuccess);
}

// "If either event was created with the cudaEventDisableTiming flag, then this function will return
// cudaErrorInvalidResourceHandle"; the same applies if one was not recorded.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from_handle, cudaEvent_t to_handle) {
  STAND_IN(cudaError_t);
  auto* from = call.find<EventObject>(from_handle, kEvent);
  auto* to = call.find<EventObject>(to_handle, kEvent);
  if (!from || !to || !ms) return call.result(cudaErrorInvalidValue);
  DEMAND(cudaErrorInvalidResourceHandle, from->timing && to->timing, "an event that takes no time");
  DEMAND(cudaErrorInvalidResourceHandle, from->stream && to->stream, "an event that was never recorded");
  DEMAND(cudaErrorNotReady, from->stream->done >= from->at && to->stream->done >= to->at,
         "an event that has not passed");
  // The card's clock moves by a microsecond with each piece of work of a stream.
  *ms = 1e-3F * (static_cast<float>(to->at) - static_cast<float>(from->at));
  return call.result(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  STAND_IN(cudaError_t);
  Stream* stream = stream_of(call, handle);
  if (!stream) return call.result(cudaErrorInvalidResourceHandle);
  // Other modes also forbid other threads what only this one must not do.
  DEMAND(cudaErrorInvalidValue, mode == cudaStreamCaptureModeThreadLocal, "capture mode {}", static_cast<int>(mode));
  DEMAND(cudaErrorIllegalState, !stream->capturing && !this_thread().capturing, "a capture is under way");
  stream->capturing = true;
  stream->invalid = false;
  stream->captured.clear();
  this_thread().capturing = stream;
  return call.result(cudaSuccess);
}

// Called by the thread that began it ("cudaStreamEndCapture"). The capture is over even if it fails.
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  STAND_IN_END;
  Stream* stream = stream_of(call, handle);
  if (graph) *graph = nullptr;
  if (!stream) return call.ended(cudaErrorInvalidResourceHandle);
  if (!call.demand(graph && stream->capturing && this_thread().capturing == stream, "not captured by this thread"))
    return call.ended(cudaErrorStreamCaptureWrongThread);
  stream->capturing = false;
  this_thread().capturing = nullptr;
  if (stream->invalid) return call.ended(cudaErrorStreamCaptureInvalidated);
  const cudaError_t status = call.ended(cudaSuccess);
  if (status != cudaSuccess) return status;
  auto* made = call.make<Graph>(kGraph);
  made->works = std::move(stream->captured);
  *graph = handle_of<cudaGraph_t>(made);
  return status;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t handle, unsigned long long flags) {
  STAND_IN(cudaError_t);
  auto* graph = call.find<Graph>(handle, kGraph);
  if (!graph || !exec) return call.result(cudaErrorInvalidValue);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  DEMAND(cudaErrorInvalidValue, flags == 0, "flags {}", flags);
  auto* made = call.make<Graph>(kGraphExec);
  made->works = graph->works;
  *exec = handle_of<cudaGraphExec_t>(made);
  return call.result(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  STAND_IN(cudaError_t);
  auto* exec = call.find<Graph>(handle, kGraphExec);
  Stream* stream = stream_of(call, stream_handle);
  if (!exec || !stream) return call.result(cudaErrorInvalidValue);
  if (!outside_capture(call)) return call.result(cudaErrorStreamCaptureUnsupported);
  DEMAND(cudaErrorInvalidResourceHandle, stream->device == this_thread().device,
         "a stream of device {} while device {} is current", stream->device, this_thread().device);
  for (const Work& work : exec->works) enqueue(*stream, work);
  return call.result(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
  STAND_IN_END;
  return call.ended(call.take<Graph>(handle, kGraph) ? cudaSuccess : cudaErrorInvalidValue);
}

// A running graph is freed once it has ended ("cudaGraphExecDestroy").
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle) {
  STAND_IN_END;
  return call.ended(call.take<Graph>(handle, kGraphExec) ? cudaSuccess : cudaErrorInvalidValue);
}

}  // extern "C"
