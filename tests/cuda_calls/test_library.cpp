// SPDX-License-Identifier: Apache-2.0
// Compares the stand-in's descriptor setters with those of cuDNN, if it can be opened: they need no GPU.
#include <cudnn.h>
#include <dlfcn.h>

#include <array>
#include <catch2/catch.hpp>
#include <utility>

#include "base/hash_rng.hpp"
#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/random.hpp"
#include "tests/support/skip.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

// One function of the stand-in and of the library, called on an object of each.
template <class Object, class... Args>
struct Both {
  cudnnStatus_t (*standin)(Object, Args...);
  cudnnStatus_t (*library)(Object, Args...);
  template <class... Given>
  std::pair<cudnnStatus_t, cudnnStatus_t> operator()(const std::pair<void*, void*>& objects, Given... given) const {
    return {standin(static_cast<Object>(objects.first), given...),
            library(static_cast<Object>(objects.second), given...)};
  }
};

void* cudnn() {
  static void* const handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return handle;
}

template <class Object, class... Args>
Both<Object, Args...> both(cudnnStatus_t (*)(Object, Args...), const char* name) {
  using Function = cudnnStatus_t (*)(Object, Args...);
  return {reinterpret_cast<Function>(standin_symbol(name)), reinterpret_cast<Function>(dlsym(cudnn(), name))};
}
#define BOTH(name) both(static_cast<decltype(&name)>(nullptr), #name)

// One of each.
template <class Handle>
std::pair<void*, void*> make_two(const Both<Handle*>& create) {
  Handle mine = nullptr, theirs = nullptr;
  REQUIRE(create.standin(&mine) == CUDNN_STATUS_SUCCESS);
  REQUIRE(create.library(&theirs) == CUDNN_STATUS_SUCCESS);
  return {mine, theirs};
}

constexpr int kDraws = 3000;

// Draws small extents, and now and then a large one, or one that no descriptor accepts.
class Draw {
 public:
  explicit Draw(const std::string& name) : rng_(static_cast<std::uint64_t>(test_seed()), name) {}
  int below(int count) { return static_cast<int>(rng_.below(at_++, static_cast<std::uint64_t>(count))); }
  int extent() {
    const int kind = below(12);
    return kind == 0 ? -below(2) : kind == 1 ? 1 << below(11) : 1 + below(9);
  }
  cudnnDataType_t type() {
    return static_cast<cudnnDataType_t>(std::array{0, 1, 2, 9}[static_cast<std::size_t>(below(4))]);
  }

 private:
  HashRng rng_;
  std::uint64_t at_ = 0;
};

#define CHECK_SAME(pair)                           \
  do {                                             \
    const auto [mine_, theirs_] = (pair);          \
    if (mine_ != theirs_) CHECK(mine_ == theirs_); \
    ++compared;                                    \
  } while (false)

}  // namespace

TEST_CASE("setters of descriptors accept and refuse what cuDNN's own do", "[cuda_calls][library]") {
  if (skip_without(cudnn() != nullptr, Lacks::gpu, "libcudnn.so.9 cannot be opened here")) return;
  ledger().begin({});
  int compared = 0;
  const auto tensor = make_two(BOTH(cudnnCreateTensorDescriptor));
  const auto filter = make_two(BOTH(cudnnCreateFilterDescriptor));
  const auto conv = make_two(BOTH(cudnnCreateConvolutionDescriptor));
  const auto rnn = make_two(BOTH(cudnnCreateRNNDescriptor));
  const auto data = make_two(BOTH(cudnnCreateRNNDataDescriptor));
  const auto set_tensor = BOTH(cudnnSetTensor4dDescriptor);
  const auto set_filter = BOTH(cudnnSetFilter4dDescriptor);
  const auto set_conv = BOTH(cudnnSetConvolution2dDescriptor);
  const auto set_groups = BOTH(cudnnSetConvolutionGroupCount);
  const auto set_math = BOTH(cudnnSetConvolutionMathType);
  const auto set_rnn = BOTH(cudnnSetRNNDescriptor_v8);
  const auto set_data = BOTH(cudnnSetRNNDataDescriptor);
  Draw draw("setters");
  for (int i = 0; i < kDraws; ++i) {
    const auto format = draw.below(2) == 0 ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    const auto type = draw.type();
    const std::array<int, 6> e{draw.extent(), draw.extent(), draw.extent(),
                               draw.extent(), draw.extent(), draw.extent()};
    INFO(static_cast<int>(type) << ": " << e[0] << " " << e[1] << " " << e[2] << " " << e[3] << " " << e[4] << " "
                                << e[5]);
    CHECK_SAME(set_tensor(tensor, format, type, e[0], e[1], e[2], e[3]));
    CHECK_SAME(set_filter(filter, type, format, e[0], e[1], e[2] % 64, e[3] % 64));
    CHECK_SAME(set_conv(conv, e[0] % 64 - 1, e[1] % 64, e[2], e[3], e[4], e[5], CUDNN_CROSS_CORRELATION, type));
    CHECK_SAME(set_groups(conv, e[0]));
    CHECK_SAME(set_math(conv, static_cast<cudnnMathType_t>(draw.below(4))));
    CHECK_SAME(set_rnn(rnn, CUDNN_RNN_ALGO_STANDARD, static_cast<cudnnRNNMode_t>(draw.below(4)), CUDNN_RNN_DOUBLE_BIAS,
                       CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, draw.type(),
                       static_cast<cudnnMathType_t>(draw.below(4)), e[0], e[1], e[1], 1, nullptr,
                       static_cast<std::uint32_t>(draw.below(2))));
    const int T = e[0] % 64, N = 1 + draw.below(3);
    const std::array<int, 3> lengths{draw.below(5), 1 + draw.below(4), draw.below(5)};
    CHECK_SAME(
        set_data(data, type, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, T, N, e[1] % 64, lengths.data(), nullptr));
  }
  CHECK(compared == 7 * kDraws);
  BOTH(cudnnDestroyTensorDescriptor)(tensor);
  BOTH(cudnnDestroyFilterDescriptor)(filter);
  BOTH(cudnnDestroyConvolutionDescriptor)(conv);
  BOTH(cudnnDestroyRNNDescriptor)(rnn);
  BOTH(cudnnDestroyRNNDataDescriptor)(data);
  CHECK(ledger().alive() == std::vector<std::string>{});
}
