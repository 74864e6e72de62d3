// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/plan_memory.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/spans.hpp"
#include "device/vector.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::size_t kLine = 64;

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::size_t bytes_of_slot(const Plan& plan, DType dtype, const WireForm* form) {
  if (!form) return static_cast<std::size_t>(plan.slot_elems()) * size_of(dtype);
  return whole_lines(form->most_bytes(plan.slot_elems()));
}

std::size_t bytes_of_slots(const Plan& plan, DType dtype, const WireForm* form) {
  return static_cast<std::size_t>(plan.slots()) * bytes_of_slot(plan, dtype, form);
}

}  // namespace

std::byte* Scratch::reserve(std::size_t bytes, std::string_view plan) {
  if (bytes <= bytes_) return memory_.get();
  memory_.reset();
  bytes_ = whole_lines(bytes);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kLine, bytes_)));
  if (memory_) return memory_.get();
  bytes_ = 0;
  throw MemoryError(fmt::format("all-reduce '{}': {} bytes of scratch cannot be allocated", plan, bytes));
}

void PlanMemory::start(const Plan& plan, void* data, DType dtype, WireForm* form, Scratch& scratch) {
  data_ = static_cast<std::byte*>(data);
  dtype_ = dtype;
  form_ = form;
  slot_bytes_ = bytes_of_slot(plan, dtype, form);
  const std::size_t of_slots = bytes_of_slots(plan, dtype, form);
  slots_ = scratch.reserve(of_slots + (form && form->in_place() ? form->most_bytes(form->elems()) : 0), plan.name());
  if (!form_ || plan.steps() == 0) return;
  filled_.assign(static_cast<std::size_t>(plan.slots()), 0);
  image_ = form_->in_place() ? slots_ + of_slots : nullptr;
  form_->begin(data_);
}

void PlanMemory::finish() {
  if (form_) form_->finish(data_);
}

PlanMemory::Block PlanMemory::outgoing(const Step& step, std::size_t same_bytes) {
  if (!form_) return {step.slot < 0 ? static_cast<std::byte*>(buffer(step)) : slot(step), plain_bytes(step)};
  if (step.slot >= 0) return {slot(step), filled(step)};
  ECHELON_CHECK(image_ != nullptr, "'{}' goes through slots alone", form_->name());
  if (same_bytes > 0) return {image(step), same_bytes};
  const SpanScope span(SpanKind::encode);
  return {image(step), form_->encode(buffer(step), step.range, step.sum, image(step))};
}

PlanMemory::Block PlanMemory::incoming(const Step& step) {
  if (!form_) return {step.slot < 0 ? static_cast<std::byte*>(buffer(step)) : slot(step), plain_bytes(step)};
  ECHELON_CHECK(step.slot >= 0 || image_ != nullptr, "'{}' goes through slots alone", form_->name());
  return {step.slot < 0 ? image(step) : slot(step), form_->most_bytes(step.range.elems())};
}

bool PlanMemory::arrived(const Step& step, std::size_t bytes) {
  if (!form_) return bytes == plain_bytes(step);
  const std::size_t most = form_->most_bytes(step.range.elems());
  if (bytes > most || (form_->exact_size() && bytes != most)) return false;
  if (step.slot >= 0) {
    filled(step) = bytes;
    return true;
  }
  const SpanScope span(SpanKind::decode);
  form_->decode(image(step), bytes, buffer(step), step.range);
  return true;
}

void PlanMemory::reduce(const Step& step) {
  const SpanScope span(form_ ? SpanKind::decode : SpanKind::sum);
  if (form_)
    form_->decode_add(slot(step), filled(step), buffer(step), step.range);
  else
    host_vector_ops().add(dtype_, buffer(step), slot(step), static_cast<std::size_t>(step.range.elems()));
}

void PlanMemory::copy(const Step& step) {
  if (!form_)
    return host_vector_ops().copy(dtype_, step.to_slot ? slot(step) : buffer(step),
                                  step.to_slot ? buffer(step) : slot(step),
                                  static_cast<std::size_t>(step.range.elems()));
  const SpanScope span(step.to_slot ? SpanKind::encode : SpanKind::decode);
  if (step.to_slot)
    filled(step) = form_->encode(buffer(step), step.range, step.sum, slot(step));
  else
    form_->decode(slot(step), filled(step), buffer(step), step.range);
}

}  // namespace echelon::inline comm
