// SPDX-License-Identifier: Apache-2.0
// echelon manual: the page of man(7) of this build, from the parser's table of verbs and the table of keys.
#include <fmt/format.h>

#include <cstdio>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/args_declare.hpp"
#include "config/keys.hpp"

namespace echelon::cli {
namespace {

// Text as groff prints it: no line of it is a request, and a hyphen can be copied as the ASCII character.
std::string plain(const std::string& text) {
  const std::string escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string paragraph(const std::string& head, const std::string& body) {
  return fmt::format(".TP\n.B {}\n{}\n", plain(head), plain(body));
}

// Lines that keep their breaks.
std::string listing(const std::string& text) {
  std::string out = ".PP\n.nf\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += plain(line) + "\n";
  return out + ".fi\n";
}

std::string option_text(const CLI::Option& option) {
  std::string head = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  if (!option.get_type_name().empty() && option.get_items_expected_max() > 0) head += " " + option.get_type_name();
  const std::string usual = option.get_default_str();
  return paragraph(head, option.get_description() + (usual.empty() ? "" : fmt::format(" (default: {})", usual)));
}

std::string verb_text(const Verb& verb) {
  CLI::App app;
  app.set_help_flag();
  verb.declare(app);
  std::string out = fmt::format(".SS echelon {}\n{}.\n", plain(verb.name), plain(verb.help));
  if (verb.alias) out += fmt::format("The older name {} is understood.\n", verb.alias);
  for (const CLI::Option* option : app.get_options()) out += option_text(*option);
  return out + listing(verb.examples);
}

std::string key_text(const Key<Config>& key) {
  const KeyValue usual = key.get(Config());
  const std::string limits = limits_text(usual, key.limits);
  return paragraph(key.path(), fmt::format("{} ({}{}{}; default {})", key.help, type_text(usual, key.limits),
                                           limits.empty() ? "" : ", ", limits, value_toml(usual)));
}

std::string manual() {
  std::string out = fmt::format(
      ".TH ECHELON 1 \"\" \"echelon {}\"\n"
      ".SH NAME\nechelon \\- data\\-parallel training of neural networks over MPI, and its scaling reports\n"
      ".SH SYNOPSIS\n.B echelon\n.I verb\n[options]\n"
      ".SH DESCRIPTION\n"
      "echelon reads an experiment in TOML and data sets in HDF5, trains on the ranks of an MPI launch, and reports\n"
      "whether distributing the training paid off. The same command, given again, resumes a run.\n"
      ".SH VERBS\n",
      kVersion);
  for (const Verb& verb : all_verbs()) out += verb_text(verb);
  out += ".SH KEYS OF AN EXPERIMENT\n";
  for (const Key<Config>& key : config_keys()) out += key_text(key);
  out += ".SH EXIT STATUS\n" + listing(kExitCodesText);
  return out +
         ".SH ENVIRONMENT\n"
         "ECHELON_SECTION_KEY sets a key of the experiment (ECHELON_BATCH_GLOBAL=128): \\-\\-set over environment "
         "over\n"
         "file over default.\n"
         ".SH SEE ALSO\n.BR mpirun (1),\n.BR srun (1)\n";
}

}  // namespace

Run declare_manual(CLI::App&) {
  return [] {
    std::fputs(manual().c_str(), stdout);
    return kExitOk;
  };
}

}  // namespace echelon::cli
