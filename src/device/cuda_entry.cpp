// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_entry.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"

namespace echelon::inline device {
namespace {

namespace fs = std::filesystem;

struct Library {
  CudaCountFunction* count = nullptr;
  CudaOpenFunction* open = nullptr;
  std::string missing;  // the reason why there is none
};

// Returns "" if there is none. It is not searched for along the loader's paths, where anybody may have put a file.
std::string library_file() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"", "../lib", "../bin"}) {
    const fs::path file = (folder / place / kCudaLibrary).lexically_normal();
    if (!error && fs::exists(file, error)) return file.string();
  }
  return {};
}

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "unknown loader error";
}

template <class Function>
Function* find(void* handle, const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(handle, symbol));
}

Library open_file(const std::string& file) {
  Library library;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    library.missing = "the library cannot be loaded: " + loader_error();
    return library;
  }
  const auto abi = find<CudaAbiFunction>(handle, kCudaAbiSymbol);
  library.count = find<CudaCountFunction>(handle, kCudaCountSymbol);
  library.open = find<CudaOpenFunction>(handle, kCudaOpenSymbol);
  if (abi && library.count && library.open && std::string_view(abi()) == kCudaAbi) return library;
  library = {};
  library.missing = fmt::format("{} was built for another executable: its interface is '{}', but '{}' is needed", file,
                                abi ? abi() : "nothing", kCudaAbi);
  dlclose(handle);
  return library;
}

Library load_library() {
  if (const std::string file = library_file(); !file.empty()) return open_file(file);
  Library none;
  none.missing = fmt::format(
      "the CUDA device is not available, because {} is not beside the executable (make CUDA=0 does not build it)",
      kCudaLibrary);
  return none;
}

const Library& library() {
  static const Library loaded = load_library();
  return loaded;
}

int count_gpus(std::string* why) {
  std::array<char, 512> text{};
  const int count = library().count(text.data(), text.size());
  if (count <= 0 && why) *why = text.data();
  return count > 0 ? count : 0;
}

}  // namespace

int visible_gpus(std::string* why) {
  // Checked first, so that a machine without a driver need not load the CUDA libraries to learn that it has no GPU.
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(driver);
  } else {
    if (why) *why = fmt::format("the CUDA driver is not available: {}", loader_error());
    return 0;
  }
  if (!library().open) {
    if (why) *why = library().missing;
    return 0;
  }
  return count_gpus(why);
}

std::unique_ptr<Device> open_cuda(const DeviceOptions& options) {
  if (!library().open) throw EnvironmentError("device cuda: " + library().missing);
  std::string why;
  if (visible_gpus(&why) == 0) throw EnvironmentError("device cuda: " + why);
  return std::unique_ptr<Device>(library().open(&options));
}

std::string cuda_library_problem(const std::string& file) { return open_file(file).missing; }

std::string_view auto_device_kind() {
  std::string why;
  if (visible_gpus(&why) > 0) return "cuda";
  std::error_code error;
  const bool in_machine = fs::exists("/dev/nvidia0", error) || fs::exists("/dev/dxg", error);
  log_line(in_machine ? LogLevel::warning : LogLevel::debug, fmt::format("device auto selects onednn: {}", why));
  return "onednn";
}

}  // namespace echelon::inline device
