#include "exchange/batch_norm_sum.hpp"

#include "base/check.hpp"

namespace echelon::inline exchange {

void BatchNormSum::operator()(const Tensor& tensor) {
  ECHELON_CHECK(tensor.dtype == DType::f64 && tensor.layout == Layout::plain, "sums over replicas are plain and f64");
  if (strategy_.sum_on_devices(tensor, group_.size())) return;
  host_.resize(static_cast<std::size_t>(tensor.elems()));
  device_.to_host(host_.data(), tensor.data, tensor.bytes());
  group_.sum(host_);
  device_.to_device(tensor.data, host_.data(), tensor.bytes());
}

}  // namespace echelon::inline exchange
