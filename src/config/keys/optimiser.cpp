// SPDX-License-Identifier: Apache-2.0
// [optimizer]
#include "config/keys/section.hpp"
#include "config/traits/rules.hpp"

namespace echelon::inline config::keys {

void add_optimiser(Table& all) {
  auto optimizer = part(all, "optimizer", &Config::optimiser);
  optimizer.key("rule", &OptimiserConfig::rule, words(names_in(kRules)), "");
  optimizer.key("learning_rate", &OptimiserConfig::learning_rate, range(0, 1000), "");
  optimizer.key("momentum", &OptimiserConfig::momentum, range(0, 0.9999), "rules sgd, rmsprop and lars");
  optimizer.key("momentum_before_coding", &OptimiserConfig::momentum_before_coding, {},
                "rule sgd with strategy synchronous and a codec: each replica applies momentum and decay to its own "
                "gradients, and the results are coded and summed; false: momentum is that of the sums");
  optimizer.key("weight_decay", &OptimiserConfig::weight_decay, range(0, 1), "not applied to biases and batch norm");
  optimizer.key("nesterov", &OptimiserConfig::nesterov, {}, "rule sgd: look ahead along the momentum");
  optimizer.key("beta1", &OptimiserConfig::beta1, range(0, 0.999999),
                "rules adam, adamw and lamb: decay of the first moment");
  optimizer.key("beta2", &OptimiserConfig::beta2, range(0, 0.999999),
                "rules adam, adamw and lamb: decay of the second moment");
  optimizer.key("alpha", &OptimiserConfig::alpha, range(0, 0.999999), "rule rmsprop: decay of the mean square");
  optimizer.key("epsilon", &OptimiserConfig::epsilon, range(1e-20, 1),
                "rules adam, adamw, lamb and rmsprop: added to the root of the second moment");
  optimizer.key("trust_coefficient", &OptimiserConfig::trust_coefficient, range(1e-9, 1000),
                "rule lars: eta of a layer's rate eta*|w| / (|g| + weight_decay*|w|)");
  optimizer.key("lazy", &OptimiserConfig::lazy, {},
                "sparse embeddings: only the rows that a step touches are updated, also under momentum, decay or "
                "moments, although these would change other rows too; an approximation");
  optimizer.key("clip_norm", &OptimiserConfig::clip_norm, range(0, 1e9),
                "the norm of the whole gradient is clipped to this; 0: off");
  optimizer.key("scaling", &OptimiserConfig::scaling, words(names_in(kScalings)),
                "learning_rate is multiplied by batch.global / base_batch, or by its square root");
  optimizer.key("base_batch", &OptimiserConfig::base_batch, range(0, 1e9),
                "scaling linear and sqrt: the batch size that learning_rate refers to");
  optimizer.key("schedule", &OptimiserConfig::schedule, words(names_in(kSchedules)), "schedule of the learning rate");
  optimizer.key("warmup_epochs", &OptimiserConfig::warmup_epochs, range(0, 1e6),
                "warm-up length: linear from 0 to learning_rate");
  optimizer.key("decay_at_epochs", &OptimiserConfig::decay_at_epochs, range(0, 1e6),
                "schedule step: epochs at which the rate is multiplied by decay_factor");
  optimizer.key("decay_factor", &OptimiserConfig::decay_factor, range(0, 1),
                "schedule step: factor on the rate at each of decay_at_epochs");
  optimizer.key("final_factor", &OptimiserConfig::final_factor, range(0, 1),
                "schedules cosine, polynomial and one_cycle: final learning rate as a fraction of learning_rate");
  optimizer.key("power", &OptimiserConfig::power, range(0.01, 100), "schedule polynomial; 1: a straight line");
  optimizer.key(
      "schedule_epochs", &OptimiserConfig::schedule_epochs, range(0, 1e6),
      "schedules cosine, polynomial and one_cycle: epochs that they span, whatever the length of the run; 0: the whole "
      "run");
  optimizer.younger();
  optimizer.key("average_decay", &OptimiserConfig::average_decay, range(0, 0.9999999),
                "decay a step of a moving average of the weights, which is evaluated and exported; 0: off");
  optimizer.key("points", &OptimiserConfig::points, range(0, 1e12),
                "schedules piecewise_constant and piecewise_linear: epochs or steps at which the factors apply, the "
                "first one 0");
  optimizer.key("factors", &OptimiserConfig::factors, range(0, 1000),
                "the same schedules: factor on learning_rate at each of the points");
  optimizer.key("points_in", &OptimiserConfig::points_in, words({"epochs", "steps"}),
                "the same schedules: unit of the points");
  optimizer.key("first_factor", &OptimiserConfig::first_factor, range(0, 1),
                "schedule one_cycle: first learning rate as a fraction of learning_rate");
  optimizer.key("rise", &OptimiserConfig::rise, range(0.001, 0.999),
                "schedule one_cycle: share of the span in which the rate rises from first_factor to learning_rate");
  optimizer.key("anneal", &OptimiserConfig::anneal, words({"cosine", "linear"}),
                "schedule one_cycle: form of the rise and of the fall");
}

}  // namespace echelon::inline config::keys
