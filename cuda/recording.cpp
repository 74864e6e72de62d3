#include "cuda/recording.hpp"

#include "cuda/check.hpp"

namespace echelon::cuda {
namespace {

class Graph final : public Recording {
 public:
  // Takes `graph` over.
  Graph(const Context& context, cudaGraph_t graph) : context_(context) {
    const cudaError_t status = cudaGraphInstantiate(&runnable_, graph, 0);
    cudaGraphDestroy(graph);
    ECHELON_CUDA(status);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  // One that is running is freed once it has ended.
  ~Graph() override {
    cudaSetDevice(context_.index());
    if (runnable_) cudaGraphExecDestroy(runnable_);
  }
  void replay() override {
    context_.use();
    ECHELON_CUDA(cudaGraphLaunch(runnable_, context_.stream()));
  }

 private:
  const Context& context_;
  cudaGraphExec_t runnable_ = nullptr;
};

}  // namespace

// Other threads may go on calling CUDA meanwhile; what would wait or take memory in this one is refused.
std::unique_ptr<Recording> record_ops(const Context& context, const std::function<void()>& enqueue) {
  context.use();
  cudaGraph_t graph = nullptr;
  ECHELON_CUDA(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeThreadLocal));
  try {
    enqueue();
  } catch (...) {
    cudaStreamEndCapture(context.stream(), &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  ECHELON_CUDA(cudaStreamEndCapture(context.stream(), &graph));
  return std::make_unique<Graph>(context, graph);
}

}  // namespace echelon::cuda
