#include "model/zoo/zoo.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "model/build.hpp"

namespace echelon {
namespace {

std::vector<LayerConfig> layers_of(std::string_view name, const Shape& input, std::int64_t classes) {
#define X(model) \
  if (name == #model) return zoo_##model(input, classes);
  ECHELON_ZOO(X)
#undef X
  throw ConfigError(unknown_name("model.zoo", name, zoo_names()));
}

}  // namespace

std::vector<std::string> zoo_names() {
  return {
#define X(model) #model,
      ECHELON_ZOO(X)
#undef X
  };
}

Graph build_zoo(std::string_view name, const Shape& input, std::int64_t classes) {
  std::vector<LayerConfig> layers = layers_of(name, input, classes);
  for (LayerConfig& layer : layers) layer.where = "zoo " + std::string(name);
  return build_layers(layers, input, classes);
}

}  // namespace echelon
