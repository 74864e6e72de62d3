// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "base/error.hpp"
#include "checkpoint/safetensors_header.hpp"
#include "checkpoint/saved_model.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeights = "weights/";
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library

class CheckpointWeights final : public WeightsFile {
 public:
  explicit CheckpointWeights(const std::string& path) : reader_(path) {
    for (const h5::DatasetInfo& info : reader_.datasets())
      if (info.name.starts_with(kWeights)) tensors_.push_back({info.name.substr(kWeights.size()), info.shape});
  }
  const std::string& path() const override { return reader_.path(); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const StoredTensor& tensor, void* to, DType dtype) const override {
    reader_.read_all(values_of(reader_, tensor.name), to, dtype);
  }

 private:
  h5::Reader reader_;
  std::vector<StoredTensor> tensors_;
};

enum class Coding : std::uint8_t { f64, f32, f16, bf16 };
std::size_t bytes_of(Coding coding) { return coding == Coding::f64 ? 8 : coding == Coding::f32 ? 4 : 2; }

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

template <class Word>
Word word_at(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

double value_at(const char* from, Coding coding) {
  switch (coding) {
    case Coding::f64: return word_at<double>(from);
    case Coding::f32: return static_cast<double>(word_at<float>(from));
    case Coding::f16: return half_value(word_at<std::uint16_t>(from));
    case Coding::bf16:
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{word_at<std::uint16_t>(from)} << 16));
  }
  return 0;
}

// Format: an 8-byte length, a JSON header of that length, then the values.
class Safetensors final : public WeightsFile {
 public:
  explicit Safetensors(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) throw EnvironmentError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    std::uint64_t length = 0;
    if (error || size < sizeof length || !file_.read(reinterpret_cast<char*>(&length), sizeof length))
      damaged("it is too short");
    if (length > kMostHeaderBytes || length > size - sizeof length)
      damaged(fmt::format("its header claims {} bytes, but the file has {}", length, size));
    std::string text(length, '\0');
    if (!file_.read(text.data(), static_cast<std::streamsize>(length))) damaged("its header cannot be read");
    begin_ = sizeof length + length;
    take_header(text, size - begin_);
  }
  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }

  void read(const StoredTensor& tensor, void* to, DType dtype) const override {
    const Place& place = places_.at(tensor.name);
    std::vector<char> bytes(place.bytes);
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(begin_ + place.begin));
    if (!file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      damaged(fmt::format("'{}' cannot be read", tensor.name));
    const std::size_t each = bytes_of(place.coding);
    with_float(dtype, [&]<class T>(T) {
      for (std::size_t i = 0; i * each < bytes.size(); ++i)
        static_cast<T*>(to)[i] = static_cast<T>(value_at(bytes.data() + i * each, place.coding));
    });
  }

 private:
  struct Place {
    std::uint64_t begin, bytes;
    Coding coding;
  };

  [[noreturn]] void damaged(const std::string& what) const {
    throw DataError(fmt::format("{}: is not a valid safetensors file: {}", path_, what));
  }

  void take_header(const std::string& text, std::uint64_t value_bytes) {
    static const std::map<std::string, Coding> codings = {
        {"F64", Coding::f64}, {"F32", Coding::f32}, {"F16", Coding::f16}, {"BF16", Coding::bf16}};
    try {
      for (const SafeTensor& tensor : safetensors_header(text, value_bytes)) {
        const auto coding = codings.find(tensor.dtype);
        if (coding == codings.end() || tensor.begin == tensor.end || tensor.shape.size() > Shape::kMaxRank) continue;
        tensors_.push_back({tensor.name, Shape(std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()))});
        places_[tensor.name] = {tensor.begin, tensor.end - tensor.begin, coding->second};
      }
    } catch (const std::invalid_argument& error) {
      damaged(error.what());
    }
  }

  std::string path_;
  mutable std::ifstream file_;
  std::uint64_t begin_ = 0;  // start of the values
  std::vector<StoredTensor> tensors_;
  std::map<std::string, Place> places_;
};

}  // namespace

std::unique_ptr<WeightsFile> open_weights(const std::string& location) {
  std::error_code error;
  if (location.ends_with(".safetensors") && fs::is_regular_file(location, error))
    return std::make_unique<Safetensors>(location);
  return std::make_unique<CheckpointWeights>(find_saved(location).path);
}

}  // namespace echelon::inline checkpoint
