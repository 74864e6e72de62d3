// SPDX-License-Identifier: Apache-2.0
// Loading of the CUDA library on machines that have all of it, part of it, or nothing.
#include <dlfcn.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "device/cuda_entry.hpp"
#include "tests/support/process.hpp"
#include "tests/support/skip.hpp"

using namespace echelon;
namespace fs = std::filesystem;

namespace {

std::string built_library() {
  return (fs::read_symlink("/proc/self/exe").parent_path() / "../bin" / kCudaLibrary).lexically_normal().string();
}

}  // namespace

TEST_CASE("counting GPUs gives a number or a reason, never an exception", "[device][cuda]") {
  std::string why;
  const int gpus = visible_gpus(&why);
  CHECK(gpus >= 0);
  CHECK((gpus > 0) == why.empty());
  CHECK(visible_gpus() == gpus);
}

TEST_CASE("a file that is not echelon's CUDA library is named", "[device][cuda]") {
  const test::TempFolder folder;
  CHECK_THAT(cuda_library_problem(folder / "absent.so"), Catch::Contains("absent.so"));
  std::ofstream(folder / "text.so") << "not a shared object\n";
  CHECK_THAT(cuda_library_problem(folder / "text.so"), Catch::Contains("text.so"));
  CHECK_THAT(cuda_library_problem("libz.so.1"), Catch::Contains("was built for another executable"));
}

TEST_CASE("without a usable GPU, opening the CUDA device is an environment error that says why", "[device][cuda]") {
  if (test::skip_without(visible_gpus() == 0, test::Lacks::gpu, "needs a machine without a GPU")) return;
  try {
    open_cuda({});
    FAIL("opened a CUDA device where no GPU is visible");
  } catch (const EnvironmentError& error) {
    CHECK(error.code() == kExitEnvironment);
    CHECK_THAT(std::string(error.what()), Catch::StartsWith("device cuda: "));
  }
}

TEST_CASE("the CUDA library finds all it needs in the executable", "[device][cuda]") {
  const std::string file = built_library();
  if (test::skip_without(fs::exists(file), test::Lacks::gpu, file + " is not built")) return;
  REQUIRE(cuda_library_problem(file) == "");
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle);
  std::array<char, 512> why{};
  const auto count = reinterpret_cast<CudaCountFunction*>(dlsym(handle, kCudaCountSymbol));
  const int gpus = count(why.data(), why.size());
  CHECK((gpus > 0) == (why[0] == 0));
  if (gpus == 0) CHECK_THAT(std::string(why.data()), Catch::Contains("no usable CUDA device"));
  dlclose(handle);
}
