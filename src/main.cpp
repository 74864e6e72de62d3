// Exceptions become exit codes here, and nothing else happens.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "base/crash_note.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/options.hpp"
#include "h5/file.hpp"

namespace {

int fail(int code, const char* text) {
  echelon::flush_log();
  std::fprintf(stderr, "echelon: error: %s\n%s", text, code == echelon::kExitInternal ? echelon::kReportIt : "");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    echelon::explain_crashes();
    echelon::h5::initialise();
    return echelon::cli::main_of_cli(argc, argv);
  } catch (const echelon::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(echelon::kExitMemory, "out of memory");
  } catch (const std::filesystem::filesystem_error& error) {  // a loop of links, a name that is too long, no permission
    return fail(echelon::kExitEnvironment, (error.path1().string() + ": " + error.code().message()).c_str());
  } catch (const std::system_error& error) {  // fmt::print throws it where standard output is full
    if (std::ferror(stdout) == 0) return fail(echelon::kExitInternal, error.what());
    return fail(echelon::kExitEnvironment, ("standard output cannot be written: " + error.code().message()).c_str());
  } catch (const std::exception& error) {
    return fail(echelon::kExitInternal, error.what());
  }
}
