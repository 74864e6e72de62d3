// SPDX-License-Identifier: Apache-2.0
// Damaged safetensors files: this program and the format's own library accept the same files and read the same values.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/weights_file.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

// Writes files, each as an 8-byte length, the bytes, and what the library reads: the bits of all values as f64,
// combined by exclusive or and halved, or -1 where it refuses the file. Drawn values are finite.
constexpr const char* kScript = R"(
import json, random, struct, sys
import safetensors
draw = random.Random(int(sys.argv[3]))

def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

HEADERS = [
    ({"__metadata__": {"format": "pt"}, "conv1.weight": tensor("F32", [2, 3], 0, 24), "b": tensor("F16", [4], 24, 32),
      "c": tensor("BF16", [2, 2], 32, 40), "d": tensor("F64", [2], 40, 56), "n": tensor("I64", [1], 56, 64)}, 64),
    ({"b": tensor("F32", [], 8, 12), "a": tensor("F32", [2], 0, 8), "none": tensor("F32", [0, 3], 8, 8)}, 12),
    ({"w": tensor("F32", [3], 0, 12), "x": tensor("F8_E4M3", [4], 12, 16), "y": tensor("F4", [2, 4], 16, 20)}, 20),
]
WORDS = ["null", "[]", "{}", '"F32"', '"I32"', '"F4"', '"shape"', '"data_offsets"', "[0,0]", '"dtype"', "-1", "-0",
         "1e300", "2.5", "1e999", "[[", '"\\u0000"', '"\\ud800"', ",", "true", '"b":', '["F32",[2],[0,8]]', " ", "\n",
         "\ufeff", '"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},', "9223372036854775808",
         "18446744073709551615", "[" * 130, '"__metadata__":{},']

def number(text):
    digits = [i for i, c in enumerate(text) if c.isdigit()]
    if not digits: return text
    at = draw.choice(digits)
    return text[:at] + draw.choice(["0", "1", "2", "4", "8", "12", "16", "24", "-4", "4294967296"]) + text[at + 1:]

FORMS = {"F64": ("d", 8), "F32": ("f", 4), "F16": ("e", 2)}

def values(entry):
    data = bytes(entry["data"])
    if entry["dtype"] == "BF16":
        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
    form, size = FORMS.get(entry["dtype"], ("f", 4))
    known = entry["dtype"] == "BF16" or entry["dtype"] in FORMS
    return struct.unpack("<%d%s" % (len(data) // size, form), data) if known else []

def bits(found):
    all = 0
    for _, entry in found:
        for value in values(entry): all ^= struct.unpack("<Q", struct.pack("<d", value))[0]
    return all >> 1

def changed(header, size):
    text = json.dumps(header, separators=draw.choice([(",", ":"), (", ", ": ")]))
    kind = draw.randrange(8)
    data = bytearray(byte & 0xbf for byte in draw.randbytes(size))
    if kind == 0: data += bytes(draw.choice([1, 4, 8]))
    if kind == 1: data = data[draw.choice([1, 4]):]
    for _ in range(draw.randrange(3) if kind == 2 else 0):
        at, word = draw.randrange(len(text) + 1), draw.choice(WORDS)
        text = text[:at] + word + text[at + draw.choice([0, 0, 1, 4]):]
    for _ in range(draw.randint(1, 3) if kind == 3 else 0): text = number(text)
    if kind == 4:
        names = [name for name in header if name != "__metadata__"]
        name, other = draw.choice(names), draw.choice(names)
        entry = dict(header[draw.choice(names)])
        if draw.random() < 0.5: entry["data_offsets"] = [v + draw.choice([-4, 0, 0, 4]) for v in entry["data_offsets"]]
        text = text[:-1] + f', "{draw.choice([name, other, "new"])}": {json.dumps(entry)}}}'
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if kind == 5:
        for _ in range(draw.randint(1, 4)): raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    if kind == 6: raw += draw.choice([b" ", b"   ", b"\n", b"\0", b"\0\0\0", b"\xff", b"x"])
    file = bytearray(struct.pack("<Q", len(raw))) + raw + data
    if kind == 7:
        for _ in range(draw.randint(1, 3)): file[draw.randrange(len(file))] ^= 1 << draw.randrange(8)
        if draw.random() < 0.3: file = file[:draw.randrange(len(file) + 1)]
    return bytes(file)

with open(sys.argv[1], "wb") as out:
    for i in range(int(sys.argv[2])):
        file = changed(*draw.choice(HEADERS))
        verdict = -1
        try:
            verdict = bits(safetensors.deserialize(file))
        except safetensors.SafetensorError: pass
        out.write(struct.pack("<Q", len(file)) + file + struct.pack("<q", verdict))
)";

template <class T>
T taken(const char*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

// Computes the same value as the script.
std::int64_t verdict_on(const std::string& path, std::string& why) {
  try {
    const std::unique_ptr<WeightsFile> file = open_weights(path);
    std::uint64_t all = 0;
    for (const StoredTensor& tensor : file->tensors()) {
      std::vector<double> values(static_cast<std::size_t>(tensor.shape.elems()));
      file->read(tensor, values.data(), DType::f64);
      for (const double value : values) all ^= std::bit_cast<std::uint64_t>(value);
    }
    return static_cast<std::int64_t>(all >> 1);
  } catch (const DataError& error) {
    why = error.what();
    return -1;
  }
}

TEST_CASE("damaged safetensors files are accepted where the format's own library accepts them", "[weights]") {
  if (test::skip_without(test::has_module("safetensors"), test::Lacks::package, "needs safetensors")) return;
  const char* more = std::getenv("SAFETENSORS_FILES");  // 2,000 files take a second
  const std::string files = more != nullptr ? more : "2000";
  const char* seed = std::getenv("SAFETENSORS_SEED");
  const test::TempFolder folder;
  const test::Outcome drawn = test::python({"-c", kScript, folder / "files", files, seed != nullptr ? seed : "1"});
  INFO(drawn.err);
  REQUIRE(drawn.code == 0);
  const std::string all = read_file_whole(folder / "files"), path = folder / "w.safetensors";
  int accepted = 0, tried = 0, differ = 0;
  for (const char* at = all.data(); at < all.data() + all.size(); ++tried) {
    const auto length = taken<std::uint64_t>(at);
    std::filesystem::remove(path);  // the system would flush a file that was truncated to nothing when it is closed
    std::ofstream(path, std::ios::binary).write(at, static_cast<std::streamsize>(length));
    const std::string shown(at + std::min<std::uint64_t>(length, 8), length - std::min<std::uint64_t>(length, 8));
    at += length;
    const auto expected = taken<std::int64_t>(at);
    std::string why;
    const std::int64_t found = verdict_on(path, why);
    accepted += expected >= 0 ? 1 : 0;
    if (found == expected || ++differ > 5) continue;
    UNSCOPED_INFO("the library's verdict is " << expected << ", here it is " << found << " " << why);
    CHECK(shown == "");
  }
  CHECK(differ == 0);
  CHECK(tried == std::stoi(files));
  CHECK(accepted > tried / 20);       // the drawn files are neither all good
  CHECK(accepted < tried * 19 / 20);  // nor all bad
}

}  // namespace
}  // namespace echelon
