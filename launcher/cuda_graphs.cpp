#include "launcher/cuda_graphs.h"

#include <stdexcept>
#include <utility>

#ifdef TUPELO_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace tupelo {

#ifdef TUPELO_CUDA

namespace {

class CudaGraph : public RecordedWork {
 public:
  CudaGraph(const std::function<void()>& work, c10::cuda::CUDAStream stream,
            at::MempoolId_t memory) {
    // What is under way uses memory that must not move into the graph's, and may not be waited for
    // from inside.
    c10::cuda::device_synchronize();
    const c10::cuda::CUDAStreamGuard on_stream(stream);
    // Other threads lock pages and ask for events meanwhile, which is none of this stream's work.
    graph_.capture_begin(memory, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      end_after_failure();
      throw;
    }
    graph_.capture_end();
  }

  void replay() override { graph_.replay(); }

 private:
  // The first error says what was wrong.
  void end_after_failure() noexcept {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
    }
  }

  at::cuda::CUDAGraph graph_;
};

}  // namespace

WorkRecorder cuda_graph_recorder(c10::Device device) {
  if (!device.is_cuda()) {
    throw std::invalid_argument("only CUDA devices record graphs, not " + device.str());
  }
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  const at::MempoolId_t memory = at::cuda::graph_pool_handle();
  return [stream, memory](const std::function<void()>& work) -> std::unique_ptr<RecordedWork> {
    return std::make_unique<CudaGraph>(work, stream, memory);
  };
}

#else

WorkRecorder cuda_graph_recorder(c10::Device device) {
  throw std::invalid_argument("this build has no CUDA and records no graphs of " + device.str());
}

#endif

}  // namespace tupelo
