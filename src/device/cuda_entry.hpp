// SPDX-License-Identifier: Apache-2.0
// Opens libechelon_cuda.so, which is loaded at run time so that the program starts on machines without a GPU, a driver
// or the CUDA libraries.
//
// It is searched for beside the executable and in ../lib and ../bin relative to it, and nowhere else. The library links
// to src/base and src/device of the executable, which exports its symbols (-rdynamic). Once opened it stays open.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "device/device.hpp"

namespace echelon::inline device {

// Both files contain this string and are used together only if it is equal. Change it with every change of device.hpp,
// device_*.hpp, copy_queue.hpp, delay_compensation.hpp, op.hpp, op_spec.hpp, ops/, vector.hpp or update_rules/ that
// moves a member.
inline constexpr const char* kCudaAbi = "echelon-cuda 0.1.0-12";

inline constexpr const char* kCudaLibrary = "libechelon_cuda.so";

// The functions that the library exports, by the names below.
using CudaAbiFunction = const char*();
// Returns the number of usable GPUs. If it is 0, `why` (of `why_bytes`) holds the reason. Never throws.
using CudaCountFunction = int(char* why, std::size_t why_bytes);
// Returns a new device for the caller to delete; throws EnvironmentError or MemoryError.
using CudaOpenFunction = Device*(const DeviceOptions* options);
inline constexpr const char* kCudaAbiSymbol = "echelon_cuda_abi";
inline constexpr const char* kCudaCountSymbol = "echelon_cuda_count";
inline constexpr const char* kCudaOpenSymbol = "echelon_cuda_open";

// Opens the CUDA device. EnvironmentError, with the name of the missing part, if the library, libcudnn, libcublas, the
// driver or a card is missing.
std::unique_ptr<Device> open_cuda(const DeviceOptions& options);

// The reason why this file cannot be used as the CUDA library; empty if it can.
std::string cuda_library_problem(const std::string& file);

// The kind of device that `auto` selects here: "cuda" if a GPU is usable, else "onednn". Logs a warning if the machine
// has a GPU that is not usable.
std::string_view auto_device_kind();

}  // namespace echelon::inline device
