// SPDX-License-Identifier: Apache-2.0
// The options of predict, eval and export.
#include "cli/args_declare.hpp"
#include "cli/options.hpp"

namespace echelon::cli {
namespace {

void add_weights(CLI::App& app, std::string& form) {
  app.add_option("--weights", form, "trained, or int8: matrices as 8-bit numbers with a scale per row")
      ->capture_default_str();
}

CLI::Option* add_inference(CLI::App& app, PredictOptions& o) {
  app.add_option("model", o.model, "folder of a run (its newest checkpoint), or one checkpoint")->required();
  CLI::Option* const data = app.add_option("data", o.data, "folder, file or pattern of shards");
  app.add_option("--batch", o.batch, "samples per forward pass")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--device", o.device, "default: the kind that the model was trained on");
  app.add_option("--threads", o.threads, "0: all cores")->check(CLI::Range(0, 4096))->capture_default_str();
  add_weights(app, o.weights);
  return data;
}

// Adds --beam and the options that need it; returns --beam.
CLI::Option* add_beam(CLI::App& app, PredictOptions& o, const char* help) {
  CLI::Option* const beam = app.add_option("--beam", o.beam, help)->check(CLI::Range(1, 1024));
  app.add_option("--length-penalty", o.length_penalty,
                 "exponent A of the length: the best beam has the largest log p / length^A; 0: no normalisation")
      ->type_name("A")
      ->check(number_in(0.0, 100.0))
      ->capture_default_str();
  app.add_option("--max-length", o.max_length, "tokens of a translation; 0: as many as the longest target of the data")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  return beam;
}

}  // namespace

Run declare_predict(CLI::App& app) {
  auto o = held<PredictOptions>();
  add_inference(app, *o)->description(
      "folder, file or pattern of shards; default: data.test of the run's config, for --generate and --prompt "
      "data.train");
  app.add_option("--out", o->out,
                 "HDF5 file with predictions (outputs if there are no classes); for text, a copy of it");
  app.add_flag("--outputs", o->outputs, "also write the probabilities of all classes");
  app.add_option("--layer", o->layers, "also write the output of the layer NAME, as layers/NAME; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--overlays", o->overlays,
                 "PNG pictures of the first N samples, with the class of each pixel in colour, beside the file of "
                 "predictions; default 4 for models with a class for every pixel")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->type_name("N");
  CLI::Option* const generate =
      app.add_option("--generate", o->generate, "generate N tokens after the prompt and print the text")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  CLI::Option* const beam =
      add_beam(app, *o, "print the translation of each source, by beam search with B beams; 1: greedy");
  beam->excludes(generate);
  CLI::Option* const prompt =
      app.add_option("--prompt", o->prompt, "the beginning of the text, or the source to be translated")
          ->check(CLI::Validator(
              [](const std::string& text) {
                return text.empty() ? std::string("is empty: leave it out") : std::string();
              },
              "TEXT"));
  app.add_option("--prompt-file", o->prompt_file, "the same from a file, with a source in each line")->excludes(prompt);
  app.add_option("--temperature", o->temperature, "tokens are drawn from softmax(logits / T); 0: the likeliest one")
      ->check(number_in(0.0, 1e6))
      ->capture_default_str()
      ->needs(generate);
  app.add_option("--top-k", o->top_k, "only the likeliest K tokens are drawn; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->needs(generate);
  app.add_option("--seed", o->seed, "seed of the draws")->capture_default_str()->needs(generate);
  return [o] { return run_predict(*o); };
}

Run declare_eval(CLI::App& app) {
  auto o = held<PredictOptions>();
  add_inference(app, *o)->description("folder, file or pattern of shards; default: data.test of the run's config");
  add_beam(app, *o, "BLEU of translations by beam search with B beams; default 1: greedy");
  app.add_option("--classes", o->classes,
                 "CSV file to write: recall, precision and F1 of each class, and the confusion matrix");
  app.add_option("--sharpness", o->sharpness,
                 "also measure how far the loss rises within EPSILON (|w| + 1) of the weights")
      ->check(number_in(1e-12, 1e6))
      ->type_name("EPSILON");
  CLI::Option* const follow = app.add_flag(
      "--follow", o->follow,
      "evaluate the checkpoints of a run while another job trains it, on its data.test unless data is given, in the "
      "batches of its config; rows go to evaluation.jsonl in its folder; ends when the run has ended");
  app.add_option("--every", o->every_s, "--follow: polling interval in seconds")
      ->check(number_in(0.01, 86400.0))
      ->capture_default_str()
      ->needs(follow);
  app.add_option("--patience", o->patience_s, "--follow: seconds without a sign of life of the run")
      ->check(number_in(0.1, 1e9))
      ->capture_default_str()
      ->needs(follow);
  return [o] { return run_eval(*o); };
}

Run declare_export(CLI::App& app) {
  auto o = held<ExportOptions>();
  app.add_option("model", o->model, "folder of a run (its newest checkpoint), or one checkpoint")->required();
  app.add_option("--format", o->format, "safetensors: the weights; onnx: the model with its weights")
      ->capture_default_str();
  add_weights(app, o->weights);
  app.add_option("--out", o->out, "default: step-NNNNNNNN.safetensors or .onnx");
  return [o] { return run_export(*o); };
}

}  // namespace echelon::cli
