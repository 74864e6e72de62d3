// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_runtime.hpp"

#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "tests/support/python.hpp"

namespace echelon::test {
namespace {

constexpr const char* kScript = R"(
import json, sys
import numpy, onnx, onnxruntime
onnxruntime.set_default_logger_severity(3)
types = {"f32": numpy.float32, "i32": numpy.int32}

def array(value):
    return numpy.array(value["values"], types[value["type"]]).reshape(value["shape"])

def distance(case):
    onnx.checker.check_model(onnx.load(case["file"]), full_check=True)
    session = onnxruntime.InferenceSession(case["file"], providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    far, states = 0.0, {}
    for batch in case["batches"]:
        given = {name: array(value) for name, value in batch["inputs"].items()}
        expected = array(batch["outputs"])
        feed = {}
        for wanted in session.get_inputs():
            zeros = numpy.zeros([len(expected), wanted.shape[-1]], numpy.float32) if wanted.name not in given else None
            feed[wanted.name] = given.get(wanted.name, states.get(wanted.name, zeros))
        found = dict(zip(names, session.run(None, feed)))
        states = {name[:-len("_next")]: value for name, value in found.items() if name.endswith("_next")}
        assert found["outputs"].shape == expected.shape, f'{found["outputs"].shape} for {expected.shape}'
        difference = numpy.abs(found["outputs"] - expected).max() / max(1.0, numpy.abs(expected).max())
        far = max(far, float(difference)) if difference == difference else 1e9
    return far

distances = {}
for name, case in json.load(open(sys.argv[1])).items():
    try:
        distances[name] = distance(case)
    except Exception as error:
        print(f"{name}: {error}", file=sys.stderr)
        distances[name] = 1e9
print(json.dumps(distances))
)";

nlohmann::json as_json(const OnnxValues& value) {
  const auto extents = value.shape.extents();
  return {{"type", value.type},
          {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
          {"values", value.values}};
}

}  // namespace

bool has_onnx_runtime() { return has_module("onnx, onnxruntime"); }

void OnnxCases::add(const std::string& name, const std::string& file, const std::map<std::string, OnnxValues>& inputs,
                    const OnnxValues& outputs) {
  nlohmann::json batch = {{"inputs", nlohmann::json::object()}, {"outputs", as_json(outputs)}};
  for (const auto& [input, value] : inputs) batch["inputs"][input] = as_json(value);
  cases_[name]["file"] = file;
  cases_[name]["batches"].push_back(batch);
}

std::map<std::string, double> OnnxCases::run() const {
  const TempFolder folder;
  write_file_whole(folder / "cases.json", cases_.dump());
  const Outcome outcome = python({"-c", kScript, folder / "cases.json"});
  UNSCOPED_INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return nlohmann::json::parse(outcome.out).get<std::map<std::string, double>>();
}

}  // namespace echelon::test
