// SPDX-License-Identifier: Apache-2.0
#include "cuda/recording.hpp"

#include <utility>

#include "cuda/check.hpp"
#include "cuda/handles.hpp"

namespace echelon::cuda {
namespace {

using OwnedGraph = Owned<cudaGraph_t, &cudaGraphDestroy>;
using OwnedRunnable = Owned<cudaGraphExec_t, &cudaGraphExecDestroy>;

class Graph final : public Recording {
 public:
  Graph(const Context& context, OwnedGraph graph) : context_(context) {
    cudaGraphExec_t runnable = nullptr;
    ECHELON_CUDA(cudaGraphInstantiate(&runnable, graph.get(), 0));
    runnable_.reset(runnable);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  // CUDA frees a running graph once it has ended.
  ~Graph() override { cudaSetDevice(context_.index()); }
  void replay() override {
    context_.use();
    ECHELON_CUDA(cudaGraphLaunch(runnable_.get(), context_.stream()));
  }

 private:
  const Context& context_;
  OwnedRunnable runnable_;
};

}  // namespace

// Other threads may continue to call CUDA meanwhile; calls of this thread that would wait or allocate are refused.
std::unique_ptr<Recording> record_ops(const Context& context, const std::function<void()>& enqueue) {
  context.use();
  ECHELON_CUDA(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t captured = nullptr;  // stays null if the capture fails
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(context.stream(), &captured);
    const OwnedGraph unused(captured);
    cudaGetLastError();
    throw;
  }
  ECHELON_CUDA(cudaStreamEndCapture(context.stream(), &captured));
  return std::make_unique<Graph>(context, OwnedGraph(captured));
}

}  // namespace echelon::cuda
