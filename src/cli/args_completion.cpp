// SPDX-License-Identifier: Apache-2.0
// echelon completion: prints a bash script that completes verbs, options, files, the keys of --set and the words that a
// key may have. It is generated from the parser and the table of keys of this build.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.hpp"
#include "cli/args_declare.hpp"
#include "config/keys.hpp"

namespace echelon::cli {
namespace {

std::vector<CLI::App*> subs_of(const CLI::App& app) {
  std::vector<CLI::App*> subs;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    subs.push_back(const_cast<CLI::App*>(sub));
  return subs;
}

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) text += fmt::format("{}--{}", text.empty() ? "" : " ", name);
  return text;
}

// The words that may follow each verb: "bench) subs="step update .."; options="--help";;"
void add_cases(const CLI::App& app, const std::string& path, std::string& cases) {
  std::string subs;
  for (const CLI::App* sub : subs_of(app)) subs += fmt::format("{}{}", subs.empty() ? "" : " ", sub->get_name());
  cases += fmt::format("    \"{}\") subs=\"{}\"; options=\"{}\" ;;\n", path, subs, options_of(app));
  for (const CLI::App* sub : subs_of(app))
    add_cases(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), cases);
}

std::string words_of(const Key<Config>& key) {
  if (std::holds_alternative<bool>(key.get(Config()))) return "true false";
  return joined(key.limits.words, " ");
}

constexpr const char* kScript = R"(# Completion of echelon's command line in bash:
#   source <(echelon completion bash)
_echelon() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} key="" words="" path="" subs options i
  COMPREPLY=()
  if [[ $cur == "=" ]]; then key=$prev cur=""                 # bash cuts words at "="
  elif [[ $prev == "=" ]]; then key=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  if [[ -n $key && $key != --set ]]; then
    case $key in
{values}    esac
    if [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); else _echelon_files "$cur"; fi
    return
  fi
  if [[ $prev == --set || $key == --set ]]; then
    COMPREPLY=($(compgen -S = -W "{keys}" -- "$cur"))
    compopt -o nospace 2> /dev/null
    return
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    _echelon_verb "${{path:+$path }}${{COMP_WORDS[i]}}" || break
    path="${{path:+$path }}${{COMP_WORDS[i]}}"
  done
  _echelon_verb "$path"
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $subs ]]; then COMPREPLY=($(compgen -W "$subs" -- "$cur"))
  else _echelon_files "$cur"
  fi
}}
_echelon_verb() {{
  subs="" options=""
  case $1 in
{cases}    *) return 1 ;;
  esac
}}
_echelon_files() {{
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$1"))
  compopt -o filenames 2> /dev/null
}}
complete -F _echelon echelon
)";

std::string bash_completion(const CLI::App& app) {
  std::string cases, keys, values;
  add_cases(app, "", cases);
  for (const Key<Config>& key : config_keys()) {
    keys += fmt::format("{}{}", keys.empty() ? "" : " ", key.path());
    if (const std::string words = words_of(key); !words.empty())
      values += fmt::format("      {}) words=\"{}\" ;;\n", key.path(), words);
  }
  return fmt::format(kScript, fmt::arg("values", values), fmt::arg("keys", keys), fmt::arg("cases", cases));
}

}  // namespace

Run declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>("bash");
  app.add_option("shell", *shell, "bash")->check(CLI::IsMember({"bash"}))->capture_default_str();
  return [&app, shell] {
    std::fputs(bash_completion(*app.get_parent()).c_str(), stdout);
    return kExitOk;
  };
}

}  // namespace echelon::cli
