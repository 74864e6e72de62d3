// SPDX-License-Identifier: Apache-2.0
#include <H5public.h>
#include <fmt/format.h>
#include <hdf5.h>

#include "h5/file.hpp"
#include "h5/lzf.hpp"

namespace echelon::h5 {

void initialise() {
  H5dont_atexit();  // after a failed flush, the exit handler would crash
  H5open();
  register_lzf();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // for this thread; Reader and Writer do it in theirs
}

std::string library_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace echelon::h5
