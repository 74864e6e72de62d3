// Exceptions become exit codes here, and nothing else happens.
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/options.hpp"
#include "h5/file.hpp"

namespace {

int fail(int code, const char* text) {
  echelon::flush_log();
  std::fprintf(stderr, "echelon: error: %s\n", text);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    echelon::h5::initialise();
    return echelon::cli::main_of_cli(argc, argv);
  } catch (const echelon::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(echelon::kExitMemory, "out of memory");
  } catch (const std::exception& error) {
    return fail(echelon::kExitInternal, error.what());
  }
}
