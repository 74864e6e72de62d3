# SPDX-License-Identifier: Apache-2.0
"""Writes HDF5 files in the layouts of public data sets, and what h5py reads from them.

foreign_files.py FOLDER: FOLDER/cases.json lists name, location, [data.hdf5] table, shape of a sample (C, W),
(C, H, W), (C, D, H, W) or (T, F), and files of float32: samples as the model is fed them, labels, weights.
"""
import json
import os
import sys

import h5py
import numpy as np

folder = sys.argv[1]
rng = np.random.default_rng(5)
cases = []
N = 37


def put(path, **datasets):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file.create_dataset(name.replace("__", "/"), data=values)


def case(name, location, table, samples, labels, classes, weights=None):
    """samples: (N, C, H, W) or (N, T, F), normalised; labels (N) or (N, K)."""
    for kind, values in (("samples", samples), ("labels", labels), ("weights", weights)):
        if values is not None:
            np.ascontiguousarray(values, "f4").tofile(f"{folder}/{name}.{kind}")
    cases.append({"name": name, "location": os.path.join(folder, location), "table": table, "classes": classes,
                  "shape": list(samples.shape[1:]), "count": len(samples), "weighted": weights is not None,
                  "label_shape": list(labels.shape[1:])})


def at(name):
    return f"{folder}/{name}"


bytes_ = lambda *shape: rng.integers(0, 256, shape, "u1")
floats = lambda *shape: rng.standard_normal(shape).astype("f4")
whole = lambda n, most: rng.integers(0, most, n)
planes = lambda x: x.transpose(0, 3, 1, 2)

# Caffe: floats as classes.
x, y = floats(N, 1, 6, 5), whole(N, 10)
put(at("caffe.h5"), data=x, label=y.astype("f4"))
case("caffe", "caffe.h5", 'samples = "data"\nlabels = "label"\nclasses = 10', x, y, 10)

# ModelNet40: points with three coordinates.
x, y = floats(N, 20, 3), whole(N, 40)
put(at("modelnet.h5"), data=x, label=y.astype("u1")[:, None])
case("modelnet", "modelnet.h5", 'samples = "data"\naxes = "NWC"\nlabels = "label"\nclasses = 40',
     x.transpose(0, 2, 1), y, 40)

# PCam: samples and labels in two files.
x, y = bytes_(N, 6, 5, 3), whole(N, 2)
put(at("pcam/train_x.h5"), x=x)
put(at("pcam/train_y.h5"), y=y.astype("u1")[:, None, None, None])
case("pcam", "pcam/*_x.h5", 'samples = "x"\naxes = "NHWC"\nlabels = "y"\nlabels_file = ["_x.h5", "_y.h5"]\nclasses = 2',
     planes(x) / 255.0, y, 2)

# Galaxy10.
x, y = bytes_(N, 6, 5, 3), whole(N, 10)
put(at("galaxy.h5"), images=x, ans=y.astype("u1"))
case("galaxy", "galaxy.h5", 'samples = "images"\naxes = "NHWC"\nlabels = "ans"\nclasses = 10\nmean = [0.25, 0.5, 0.125]\n'
     'std = 0.5', (planes(x) / 255.0 - np.array([0.25, 0.5, 0.125])[:, None, None]) / 0.5, y, 10)

# RadioML 2018: time steps of two features, a column a class.
x, y = floats(N, 16, 2), whole(N, 24)
put(at("radioml.hdf5"), X=x, Y=np.eye(24, dtype="i8")[y])
case("radioml", "radioml.hdf5", 'samples = "X"\naxes = "NTF"\nlabels = "Y"\nlabel_form = "one_hot"', x, y, 24)

# So2Sat: two instruments, doubles.
a, b, y = rng.standard_normal((N, 4, 4, 8)), rng.standard_normal((N, 4, 4, 10)), whole(N, 17)
put(at("so2sat.h5"), sen1=a, sen2=b, label=np.eye(17)[y])
both = planes(np.concatenate([a, b], 3))
table = 'samples = ["sen1", "sen2"]\naxes = "NHWC"\nlabels = "label"\nlabel_form = "one_hot"'
case("so2sat", "so2sat.h5", table, both, y, 17)
case("so2sat_channels", "so2sat.h5", table + "\nchannels = [9, 0, 17]\nmean = [1, 2, 3]",
     both[:, [9, 0, 17]] - np.array([1, 2, 3])[:, None, None], y, 17)

# ImageNet of BigGAN: LZF, 64-bit labels.
x, y = bytes_(N, 3, 6, 5), whole(N, 1000)
with h5py.File(at("biggan.hdf5"), "w") as file:
    file.create_dataset("imgs", data=x, chunks=(8, 3, 6, 5), compression="lzf")
    file.create_dataset("labels", data=y.astype("i8"), chunks=(8,), compression="lzf")
case("biggan", "biggan.hdf5", 'samples = "imgs"\nlabels = "labels"\nclasses = 1000', x / 255.0, y, 1000)

# Fuel: parts by the attribute `split`.
x, y = bytes_(N, 1, 6, 5), whole(N, 10)
put(at("fuel.hdf5"), features=x, targets=y.astype("u1")[:, None])
with h5py.File(at("fuel.hdf5"), "a") as file:
    form = np.dtype([("split", "S5"), ("source", "S8"), ("start", "i8"), ("stop", "i8"), ("available", "?"),
                     ("comment", "S1")])
    file.attrs["split"] = np.array([(b"train", b"features", 0, 30, True, b"."), (b"train", b"targets", 0, 30, True, b"."),
                                    (b"test", b"features", 30, N, True, b"."), (b"test", b"targets", 30, N, True, b".")],
                                   form)
table = 'samples = "features"\nlabels = "targets"\nclasses = 10\nsplit = '
case("fuel_train", "fuel.hdf5", table + '"train"', x[:30] / 255.0, y[:30], 10)
case("fuel_test", "fuel.hdf5", table + '"test"', x[30:] / 255.0, y[30:], 10)
case("rows", "fuel.hdf5", 'samples = "features"\nlabels = "targets"\nclasses = 10\nrows = [3, 20]', x[3:20] / 255.0,
     y[3:20], 10)

# HEP-CNN: no channel axis, weights.
x, y, w = floats(N, 6, 5), whole(N, 2), rng.random(N).astype("f4")
put(at("hep.h5"), all_events__hist=x, all_events__y=y.astype("f4"), all_events__weight=w)
case("hep", "hep.h5", 'samples = "all_events/hist"\naxes = "NHW"\nlabels = "all_events/y"\nclasses = 2\n'
     'weights = "all_events/weight"', x[:, None], y, 2, w)

# One sample a file, as CosmoFlow's, in slices: counts as 16-bit integers, and parameters to be predicted.
xs, ys = rng.integers(0, 30000, (9, 6, 5, 4)).astype("i2"), floats(9, 4)
for i in range(9):
    put(at(f"cosmo/universe_{i}.h5"), x=xs[i], y=ys[i])
case("cosmo", "cosmo", 'samples = "x"\naxes = "HWC"\nlabels = "y"\ntransform = "log1p"',
     np.log1p(planes(xs).astype("f4")), ys, 0)

# Volumes: channels in front or last, without channels, in a file of their own; and series.
x, y = bytes_(N, 3, 4, 6, 2), whole(N, 10)
put(at("volumes.h5"), last=x, front=np.moveaxis(x, 4, 1), one=x[..., 0], labels=y)
table = 'labels = "labels"\nclasses = 10\nmean = [0.25, 0.5]\nstd = [0.5, 2.0]\nsamples = '
each = lambda *numbers: np.array(numbers)[:, None, None, None]
scaled = (np.moveaxis(x, 4, 1) / 255.0 - each(0.25, 0.5)) / each(0.5, 2.0)
case("volumes_last", "volumes.h5", table + '"last"\naxes = "NDHWC"', scaled, y, 10)
case("volumes_front", "volumes.h5", table + '"front"\naxes = "NCDHW"', scaled, y, 10)
case("volumes_turned", "volumes.h5", table + '"front"\naxes = "NCWHD"', scaled.swapaxes(2, 4), y, 10)
case("volumes_one", "volumes.h5", 'labels = "labels"\nclasses = 10\nsamples = "one"\naxes = "NDHW"',
     x[:, None, ..., 0] / 255.0, y, 10)
case("volumes_joined", "volumes.h5",
     'labels = "labels"\nclasses = 10\nsamples = "last"\naxes = "NDHWC"\nchannels = [1]', x[:, None, ..., 1] / 255.0, y, 10)
for i in range(9):
    put(at(f"universe/{i}.h5"), x=x[i], y=y[i])
case("universe", "universe", 'samples = "x"\naxes = "DHWC"\nlabels = "y"\nclasses = 10',
     np.moveaxis(x[:9], 4, 1) / 255.0, y[:9], 10)
x = floats(N, 3, 12)
put(at("waves.h5"), x=x, y=y)
case("waves", "waves.h5", 'samples = "x"\naxes = "NCW"\nlabels = "y"\nclasses = 10', x, y, 10)

# Statistics in a file of their own, as DeepCAM's.
xs, ys = floats(9, 6, 5, 3), whole(9, 3)
least, most = xs.min((0, 1, 2)), xs.max((0, 1, 2))
put(at("deepcam_stats/stats.h5"), climate__minval=least, climate__maxval=most)
for i in range(9):
    put(at(f"deepcam/data-{i}.h5"), climate__data=xs[i], climate__class=ys[i])
case("deepcam", "deepcam", 'samples = "climate/data"\naxes = "HWC"\nlabels = "climate/class"\nclasses = 3\n'
     f'statistics = "{at("deepcam_stats/stats.h5")}"\nstatistics_of = ["climate/minval", "climate/maxval"]\n'
     'statistics_are = "range"', planes((xs - least) / (most - least)), ys, 3)

# netCDF-4: packed integers in the other byte order, two variables, fill values, an unlimited dimension.
air, sea, y = rng.integers(-3000, 3000, (N, 6, 5)), rng.standard_normal((N, 6, 5)), floats(N)
air[3, 2, 1] = air[8] = -32767
sea[5, 0, 0] = np.nan
with h5py.File(at("climate.nc"), "w") as file:
    v = file.create_dataset("air", data=air.astype(">i2"), chunks=(5, 6, 5), maxshape=(None, 6, 5), compression=4,
                            shuffle=True)
    v.attrs["_FillValue"] = np.array([-32767], ">i2")
    v.attrs["scale_factor"], v.attrs["add_offset"] = np.array([0.01]), np.array([273.15])
    file.create_dataset("sea", data=sea.astype(">f4"), maxshape=(None, 6, 5), chunks=(7, 3, 5))
    file.create_dataset("next", data=y.astype(">f8"))
known = np.where(air == -32767, np.nan, air.astype("f4").astype("f8") * 0.01 + 273.15)
planes2 = np.stack([known, sea.astype("f4")], 1)
mean, std = np.array([280.0, 0.5])[:, None, None], np.array([10.0, 2.0])[:, None, None]
case("climate", "climate.nc", 'samples = ["air", "sea"]\naxes = "NHW"\nlabels = "next"\nmissing = "mean"\n'
     'mean = [280.0, 0.5]\nstd = [10.0, 2.0]', np.nan_to_num((planes2 - mean) / std), y, 0)

# Labels in one column of a table.
x, table_of_labels = floats(N, 7), rng.integers(0, 5, (N, 4))
put(at("table.h5"), x=x, y=table_of_labels)
case("column_class", "table.h5", 'samples = "x"\naxes = "NF"\nlabels = "y"\nlabel_form = "column"\nlabel_column = 2\n'
     "classes = 5", x[:, :, None, None], table_of_labels[:, 2], 5)
case("column_number", "table.h5", 'samples = "x"\naxes = "NF"\nlabels = "y"\nlabel_form = "column"\nlabel_column = 3',
     x[:, :, None, None], table_of_labels[:, 3], 0)
case("values", "table.h5", 'samples = "x"\naxes = "NF"\nlabels = "y"\nlabel_form = "values"\nrange = [-4, 4]',
     (x[:, :, None, None] + 4) / 8, table_of_labels, 0)

# Every type of number, in both byte orders.
for kind in ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]:
    for order in "<>":
        if kind in "?i1u1" and order == ">":
            continue
        values = rng.integers(0, 2 if kind == "?" else 100, (N, 1, 3, 4))
        name = "type_" + {"?": "bool"}.get(kind, kind) + {"<": "", ">": "_big"}[order]
        with h5py.File(at(name + ".h5"), "w") as file:
            file.create_dataset("x", data=values.astype(order + kind if kind != "?" else kind), chunks=(10, 1, 3, 4),
                                compression=1)
            file.create_dataset("y", data=(values[:, 0, 0, 0] % 2).astype(order + kind if kind != "?" else kind))
        byte = kind == "u1"
        case(name, name + ".h5", 'samples = "x"\nlabels = "y"\nclasses = 2', values / (255.0 if byte else 1.0),
             values[:, 0, 0, 0] % 2, 2)

# Statistics of the channels that are used, in a file beside the data.
put(at("used/stats.h5"), m=np.array([1.0, 2.0]), s=np.array([2.0, 4.0]))
x, y = floats(N, 4, 6, 5), whole(N, 3)
put(at("used/data.h5"), x=x, y=y)
case("used_statistics", "used/data.h5", 'samples = "x"\nlabels = "y"\nclasses = 3\nchannels = [3, 1]\n'
     'statistics = "stats.h5"\nstatistics_of = ["m", "s"]',
     (x[:, [3, 1]] - np.array([1, 2])[:, None, None]) / np.array([2, 4])[:, None, None], y, 3)

# Packed labels.
y = rng.integers(-50, 50, N).astype("i2")
with h5py.File(at("packed_labels.h5"), "w") as file:
    file.create_dataset("x", data=x)
    d = file.create_dataset("y", data=y)
    d.attrs["scale_factor"], d.attrs["add_offset"] = 0.5, 3.0
case("packed_labels", "packed_labels.h5", 'samples = "x"\nlabels = "y"', x, y * 0.5 + 3, 0)

# Rows longer than what is placed together, channels last.
x, y = floats(N, 2, 300, 3), whole(N, 3)
put(at("wide.h5"), x=x, y=y)
case("wide", "wide.h5", 'samples = "x"\naxes = "NHWC"\nlabels = "y"\nclasses = 3\nchannels = [2, 0]', planes(x)[:, [2, 0]],
     y, 3)

# Forecasts: the label of a record is the field two records later, of the rows that are chosen.
x = floats(N, 6, 5)
put(at("forecast.h5"), x=x)
case("forecast", "forecast.h5", 'samples = "x"\naxes = "NHW"\nlabels = "x"\nlabel_form = "values"\nlead = 2\n'
     "label_mean = 0.5\nlabel_std = 4\nrows = [3, 30]", x[3:28, None], ((x[5:30].astype("f8") - 0.5) / 4).astype("f4"), 0)

# Storage: a user block, raw files, filters; each type and byte order above is chunked, these are contiguous.
x, y = whole((N, 6, 5, 3), 1000).astype("f4"), whole(N, 3)
for name, options, storage in [("user_block", {"userblock_size": 512}, {}), ("raw", {}, {"external": [(at("raw.bin"), 0, x.nbytes)]}),
                               ("filtered", {}, {"chunks": (8, 6, 5, 3), "shuffle": True, "compression": 4, "fletcher32": True}),
                               ("boxes", {}, {"chunks": (8, 3, 5, 2)}), ("newest", {"libver": "v110"}, {})]:
    for kind in ["<f4", ">f4", "<f2", ">f2", ">i2", "<f8", ">u4"]:
        with h5py.File(at(f"{name}{kind}.h5"), "w", **options) as file:
            file.create_dataset("x", data=x.astype(kind), **storage)
            file.create_dataset("y", data=y.astype(">i4"))
        case(f"{name}{kind}", f"{name}{kind}.h5", 'samples = "x"\naxes = "NHWC"\nlabels = "y"\nclasses = 3\nmean = [1, 2, 3]',
             planes(x) - np.array([1, 2, 3])[:, None, None], y, 3)
        storage.pop("external", None)  # one raw file

# Large samples, which are read one by one: two fields with the fields of the next record as labels, and channels last.
a, b, y = floats(9, 4, 96, 96), floats(9, 3, 96, 96), whole((9, 96, 96), 3)
last = floats(9, 96, 96, 13)
put(at("large.h5"), fields__a=a, fields__b=b.astype(">f4"), last=last, y=y.astype("u1"), labels=floats(9, 2))
case("large_fields", "large.h5", 'samples = ["fields/a", "fields/b"]\naxes = "NCHW"\nlabels = "fields/a"\nmean = 0.5\n'
     'label_form = "values"\nlead = 1\nstd = 2', (np.concatenate([a, b], 1)[:8] - 0.5) / 2, a[1:], 0)
case("large_last", "large.h5", 'samples = "last"\naxes = "NHWC"\nlabels = "y"\nlabel_form = "dense"\nclasses = 3',
     planes(last), y, 3)
for i in range(9):
    put(at(f"large/{i}.h5"), x=last[i], y=y[i].astype("u1"))
case("large_files", "large", 'samples = "x"\naxes = "HWC"\nlabels = "y"\nlabel_form = "dense"\nclasses = 3',
     planes(last), y, 3)

# Sets that are refused: one file differs, and attributes that make no sense.
for i in range(9):
    odd = i == 4
    put(at(f"odd/shape/{i}.h5"), x=floats(2, 6 if odd else 5, 4), y=np.float32(i))
    put(at(f"odd/type/{i}.h5"), x=floats(2, 5, 4) if odd else bytes_(2, 5, 4), y=np.float32(i))
    put(at(f"odd/steps/{i}.h5"), x=floats(9 if odd else 7, 3), y=np.float32(i))
put(at("odd/indexed.h5"), x=bytes_(N, 1, 4, 4), y=floats(N), some=np.arange(5))
with h5py.File(at("odd/indexed.h5"), "a") as file:
    form = np.dtype([("split", "S5"), ("source", "S8"), ("start", "i8"), ("stop", "i8"),
                     ("indices", h5py.special_dtype(ref=h5py.Reference))])
    rows = np.empty(1, form)
    rows[0] = (b"train", b"x", 0, 0, file["some"].ref)
    file.attrs.create("split", rows, dtype=form)
put(at("odd/packed.h5"), x=floats(N, 1, 4, 4) - 9, y=np.where(np.arange(N) == 5, -999, 1.0), two=floats(N),
    whole=floats(N))
with h5py.File(at("odd/packed.h5"), "a") as file:
    file["y"].attrs["_FillValue"] = -999.0
    file["two"].attrs["scale_factor"] = np.array([1.0, 2.0])

json.dump(cases, open(f"{folder}/cases.json", "w"))
