// SPDX-License-Identifier: Apache-2.0
// netCDF-4 files of climate models: the guess names the variable and its axes, not coordinates, bounds or grids; values
// that were never written are missing.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "data/foreign_file.hpp"
#include "data/foreign_guess.hpp"
#include "data/netcdf_hints.hpp"
#include "tests/support/python.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kWriter = R"(
import h5py, numpy as np
text = np.bytes_
def scale(f, name, n, id, **attrs):
    d = f.create_dataset(name, data=np.arange(n, dtype="f4")); d.make_scale(name)
    d.attrs["_Netcdf4Dimid"] = np.int32(id)
    for key, value in attrs.items(): d.attrs[key] = text(value)
    return d
def variable(f, name, dims, values, ids=None, **attrs):
    fill = np.float32(9.969209968386869e36)
    d = f.create_dataset(name, values.shape, "f4", fillvalue=fill, chunks=(1,) + values.shape[1:])
    d[:-1] = values[:-1]                                    # the last row is never written
    for axis, dim in enumerate(dims): d.dims[axis].attach_scale(f[dim])
    d.attrs["_Netcdf4Dimid"] = np.int32(0)
    if ids: d.attrs["_Netcdf4Coordinates"] = np.array(ids, "i4")
    for key, value in attrs.items(): d.attrs[key] = text(value)
with h5py.File("ids.nc", "w") as f:                         # as many latitudes as longitudes: told apart by number
    scale(f, "time", 5, 0, units="days since 1850-01-01", bounds="time_bnds")
    scale(f, "plev", 2, 1, positive="down")
    scale(f, "lon", 3, 3, standard_name="longitude"); scale(f, "lat", 3, 2, axis="Y")
    f["time_bnds"] = np.zeros((5, 2))
    variable(f, "ta", ["time", "plev", "lat", "lon"], np.ones((5, 2, 3, 3)), [0, 1, 2, 3], coordinates="height other")
    f["height"] = np.float32(2); f["other"] = np.arange(5.0)
with h5py.File("extents.nc", "w") as f:                     # 18 latitudes are no channels
    scale(f, "time", 5, 0, axis="T"); scale(f, "y", 18, 1); scale(f, "x", 90, 2)
    f["crs"] = np.int32(0); f["lat2"] = np.zeros((18, 90))
    variable(f, "tos", ["time", "y", "x"], np.ones((5, 18, 90)), grid_mapping="crs", coordinates="lat2")
with h5py.File("snapshot.nc", "w") as f:                    # no time: the file is one sample
    scale(f, "lat", 4, 0, axis="Y"); scale(f, "lon", 6, 1, axis="X")
    variable(f, "slp", ["lat", "lon"], np.ones((4, 6)))
with h5py.File("unknown.nc", "w") as f:
    scale(f, "cell", 6, 0); scale(f, "time", 4, 1, axis="T")
    variable(f, "v", ["time", "cell"], np.ones((4, 6)))
open("classic.nc", "wb").write(b"CDF\x02" + bytes(60))
)";

std::string guess(const std::string& path) {
  const h5::Reader file(path);
  return data::guess_foreign(file, file.datasets(), false).table;
}

}  // namespace

TEST_CASE("netCDF names its variable and its axes, and values never written are missing", "[data][foreign]") {
  if (test::skip_without(test::has_module("h5py"), test::Lacks::package, "needs h5py")) return;
  const test::Folder folder;
  const test::Outcome made = test::python({"-c", kWriter}, folder / "");
  INFO(made.err);
  REQUIRE(made.code == 0);
  const std::string ids = guess(folder / "ids.nc");
  CHECK_THAT(ids, Contains("samples = \"ta\"\naxes = \"NCHW\"\nmean = [1, 1]") && Contains("missing = \"mean\""));
  CHECK_THAT(ids, !Contains("labels"));
  CHECK_THAT(guess(folder / "extents.nc"), Contains("samples = \"tos\"\naxes = \"NHW\"\nmean = [1]"));
  CHECK_THAT(guess(folder / "snapshot.nc"), Contains("samples = \"slp\"\naxes = \"HW\"\n"));
  CHECK_THAT(guess(folder / "unknown.nc"), Contains("samples = \"v\"\naxes = \"NF\"\n"));

  Hdf5Config keys;
  keys.samples = {"ta"};
  keys.axes = "NCHW";
  keys.missing = Missing::mean;
  const ForeignFile file(folder / "ids.nc", "ids.nc", keys);
  std::vector<float> values(5 * 18);
  file.read(0, 5, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::isfinite(values[i]));
  CHECK(values[0] == 1);
  CHECK(values.back() == 0);  // the mean, which is 0 if none is given
  CHECK_THAT(test::refusal<DataError>([&] { h5::Reader(folder / "classic.nc"); }),
             Contains("not an HDF5 file, but classic netCDF: nccopy -k nc4"));
}

}  // namespace echelon
