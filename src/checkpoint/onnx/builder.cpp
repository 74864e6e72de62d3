// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/onnx/builder.hpp"

#include <fmt/format.h>

#include <numeric>

namespace echelon::inline checkpoint::onnx {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::int64_t> extents_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

}  // namespace

std::string Builder::name(const std::string& requested) {
  std::string given = requested;
  for (int number = 2; !names_.insert(given).second; ++number) given = fmt::format("{}_{}", requested, number);
  return given;
}

void Builder::write(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                    std::vector<Attribute> attributes) {
  while (inputs.back().empty()) inputs.pop_back();
  std::string called = outputs.front();
  file_.operations.push_back({.type = std::move(type),
                              .name = std::move(called),
                              .inputs = std::move(inputs),
                              .outputs = std::move(outputs),
                              .attributes = std::move(attributes)});
}

std::string Builder::add(const std::string& type, std::vector<std::string> inputs, std::vector<Attribute> attributes) {
  std::string output = name(fmt::format("{}/{}", part_, type));
  write(type, std::move(inputs), {output}, std::move(attributes));
  return output;
}

std::string Builder::integers(const std::vector<std::int64_t>& values) {
  return kept(fmt::format("integers/{}", fmt::join(values, ",")), Element::i64,
              {static_cast<std::int64_t>(values.size())}, bytes_of(values));
}

std::string Builder::integer(std::int64_t value) {
  return kept(fmt::format("integer/{}", value), Element::i64, {}, bytes_of(std::vector{value}));
}

std::string Builder::indices(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), static_cast<std::int32_t>(first));
  return kept(fmt::format("places/{}/{}", first, count), Element::i32, {count}, bytes_of(all));
}

std::string Builder::number(float value) {
  return kept(fmt::format("number/{}", value), Element::f32, {}, bytes_of(std::vector{value}));
}

std::string Builder::numbers(const Shape& shape, const std::vector<float>& values) {
  std::string made = name(part_ + "/numbers");
  constant(made, Element::f32, shape, bytes_of(values));
  return made;
}

void Builder::constant(std::string called, Element type, const Shape& shape, std::string content) {
  file_.constants.push_back({std::move(called), type, extents_of(shape), std::move(content)});
}

std::string Builder::once(const std::string& key, const std::function<std::string()>& make) {
  const auto found = made_.find(key);
  return found != made_.end() ? found->second : made_[key] = make();
}

std::string Builder::kept(const std::string& key, Element type, const std::vector<std::int64_t>& shape,
                          std::string content) {
  return once(key, [&] {
    std::string made = name(key);
    file_.constants.push_back({made, type, shape, std::move(content)});
    return made;
  });
}

}  // namespace echelon::inline checkpoint::onnx
