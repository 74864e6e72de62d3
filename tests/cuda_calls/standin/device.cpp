// SPDX-License-Identifier: Apache-2.0
// Devices and errors: CUDA Runtime API 13.0, "Device Management", "Error Handling". Two GPUs of sm_90.
#include <cstring>

#include "tests/cuda_calls/standin/streams.hpp"

namespace echelon::calls {
namespace {

struct ErrorText {
  int status;
  const char *name, *text;
};
#define ERROR(status, text) \
  { static_cast<int>(status), #status, text }
constexpr ErrorText kCudaErrors[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ERROR(cudaErrorUnknown, "unknown error"),
};
#undef ERROR

const ErrorText& error_text(cudaError_t status) {
  for (const ErrorText& error : kCudaErrors)
    if (error.status == static_cast<int>(status)) return error;
  static constexpr ErrorText kNone{0, "unrecognized error code", "unrecognized error code"};
  return kNone;
}

bool is_gpu(const Call& call, int device) {
  return call.demand(device >= 0 && device < book().settings().gpus, "device {} of {}", device, book().settings().gpus);
}

}  // namespace

std::string text_of(cudaError_t status) { return error_text(status).text; }

}  // namespace echelon::calls

using namespace echelon::calls;

extern "C" {

cudaError_t cudaSetDevice(int device) {
  STAND_IN(cudaError_t);
  if (!is_gpu(call, device)) return call.result(cudaErrorInvalidDevice);
  this_thread().device = device;
  return call.result(cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  STAND_IN(cudaError_t);
  DEMAND(cudaErrorInvalidValue, count, "null");
  *count = book().settings().gpus;
  return call.result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  STAND_IN(cudaError_t);
  if (!is_gpu(call, device) || !properties) return call.result(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "a GPU of the stand-in");
  properties->uuid.bytes[15] = static_cast<char>(device + 1);
  properties->pciBusID = device + 1;
  properties->totalGlobalMem = book().settings().card_bytes;
  properties->major = 9;
  return call.result(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  STAND_IN(cudaError_t);
  if (!is_gpu(call, device) || !value) return call.result(cudaErrorInvalidDevice);
  DEMAND(cudaErrorInvalidValue,
         attribute == cudaDevAttrComputeCapabilityMajor || attribute == cudaDevAttrComputeCapabilityMinor,
         "attribute {} is unknown to the stand-in", static_cast<int>(attribute));
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return call.result(cudaSuccess);
}

// The error of a lost context is kept ("cudaErrorIllegalAddress": "any further CUDA work will return the same
// error").
cudaError_t cudaGetLastError() {
  STAND_IN_END;
  const cudaError_t error = this_thread().last_error;
  this_thread().last_error = static_cast<cudaError_t>(book().lost());
  return error;
}

const char* cudaGetErrorString(cudaError_t status) {
  STAND_IN_END;
  return error_text(status).text;
}

const char* cudaGetErrorName(cudaError_t status) {
  STAND_IN_END;
  return error_text(status).name;
}

}  // extern "C"
