// Streams, events and graphs.
#include <chrono>
#include <memory>
#include <utility>

#include "tests/emulated_gpu/report.h"
#include "tests/emulated_gpu/runtime_api.h"
#include "tests/emulated_gpu/streams.h"

using namespace emulated_gpu;

struct CUgraph_st {
  std::shared_ptr<Recording> recording;
};

struct CUgraphExec_st {
  std::shared_ptr<Recording> recording;
};

namespace {

cudaError_t give_stream(cudaStream_t* stream) {
  note_context(current_device());
  *stream = reinterpret_cast<cudaStream_t>(&make_stream(current_device()));
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* event, unsigned flags) {
  note_context(current_device());
  *event = reinterpret_cast<cudaEvent_t>(
      new Event(current_device(), (flags & cudaEventDisableTiming) == 0));
  return cudaSuccess;
}

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return give_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return give_stream(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return give_stream(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  note_context(current_device());
  Stream& stream = stream_of(handle);
  if (stream.recording() || may_disturb_recording()) {
    return done(cudaErrorStreamCaptureUnsupported);
  }
  return stream.is_idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_for(stream_of(stream), "host waits for a stream");
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  note_context(current_device());
  Stream& stream = stream_of(handle);
  const auto recorded_in = event_of(event).recording();
  // An order within one recording needs no waiting.
  if (recorded_in != stream.recording()) return done(cudaErrorStreamCaptureIsolation);
  if (recorded_in) return cudaSuccess;
  const auto completion = event_of(event).completion();
  stream.enqueue([completion] { completion->wait(); });
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  stream_of(handle).enqueue([=] { callback(handle, cudaSuccess, data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event, 0); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return make_event(event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  note_context(current_device());
  Stream& stream = stream_of(handle);
  if (event_of(event).device() != stream.device()) return done(cudaErrorInvalidResourceHandle);
  event_of(event).record(stream);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  note_context(current_device());
  if (event_of(event).recording()) return done(cudaErrorCapturedEvent);
  if (may_disturb_recording()) return done(cudaErrorStreamCaptureUnsupported);
  return event_of(event).completion()->is_finished() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  note_context(current_device());
  if (event_of(event).recording()) return done(cudaErrorCapturedEvent);
  count("host waits for an event");
  event_of(event).completion()->wait();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!event_of(start).is_timed() || !event_of(end).is_timed()) {
    return done(cudaErrorInvalidResourceHandle);
  }
  const auto first = event_of(start).completion(), second = event_of(end).completion();
  if (!first->is_finished() || !second->is_finished()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second->time() - first->time()).count();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  *status =
      stream_of(handle).recording() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  const auto recording = stream_of(handle).recording();
  *status = recording ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = recording ? recording->id : 0;
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = exchange_capture_mode(*mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  if (handle == nullptr) return done(cudaErrorStreamCaptureUnsupported);
  Stream& stream = stream_of(handle);
  if (stream.recording()) return done(cudaErrorIllegalState);
  stream.begin_recording();
  recording_began(mode);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  auto recording = stream_of(handle).end_recording();
  if (!recording) return done(cudaErrorIllegalState);
  recording_ended();
  *graph = new CUgraph_st{std::move(recording)};
  count("graphs recorded");
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->recording};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  note_context(current_device());
  count("graphs launched");
  const auto recording = exec->recording;
  stream_of(stream).enqueue([recording] {
    for (const Work& work : recording->works) work();
  });
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = graph->recording->works.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned) {
  return done(cudaErrorNotSupported);
}

}  // extern "C"
