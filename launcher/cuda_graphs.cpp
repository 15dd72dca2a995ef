#include "launcher/cuda_graphs.h"

#include <stdexcept>
#include <utility>

#ifdef TUPELO_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace tupelo {

void require_graphs(const std::string& place_of_setting, c10::Device device) {
  if (device.is_cuda()) return;
  throw std::invalid_argument(place_of_setting +
                              " is true, which needs a CUDA device, and this run computes on " +
                              device.str() + "; valid here: false");
}

#ifdef TUPELO_CUDA

namespace {

// Memory that graphs share: LibTorch knows it as long as one of them exists.
using GraphMemory = std::shared_ptr<const at::MempoolId_t>;

class CudaGraph : public RecordedWork {
 public:
  CudaGraph(const std::function<void()>& work, c10::cuda::CUDAStream stream, GraphMemory memory)
      : memory_(std::move(memory)) {
    const c10::cuda::CUDAStreamGuard on_stream(stream);
    // Recordings that are replayed meanwhile use the memory that this one shares.
    c10::cuda::device_synchronize();
    // Other threads lock pages and ask for events meanwhile, which is none of this stream's work.
    graph_.capture_begin(*memory_, cudaStreamCaptureModeThreadLocal);
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

  GraphMemory memory_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

WorkRecorder cuda_graph_recorder(c10::Device device) {
  if (!device.is_cuda()) {
    throw std::invalid_argument("only CUDA devices record graphs, not " + device.str());
  }
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  std::weak_ptr<const at::MempoolId_t> shared;
  return
      [stream, shared](const std::function<void()>& work) mutable -> std::unique_ptr<RecordedWork> {
        GraphMemory memory = shared.lock();
        if (!memory) {
          memory = std::make_shared<const at::MempoolId_t>(at::cuda::graph_pool_handle());
          // What steps have left in the allocator's cache is as much as graphs will need, and
          // cannot be given back while they are recorded.
          c10::cuda::device_synchronize();
          c10::cuda::CUDACachingAllocator::emptyCache();
          shared = memory;
        }
        return std::make_unique<CudaGraph>(work, stream, std::move(memory));
      };
}

#else

WorkRecorder cuda_graph_recorder(c10::Device device) {
  throw std::invalid_argument("this build has no CUDA and records no graphs of " + device.str());
}

#endif

}  // namespace tupelo
