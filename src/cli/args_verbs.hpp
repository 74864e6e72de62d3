// SPDX-License-Identifier: Apache-2.0
// The table of all verbs, for args.cpp. A new verb needs an entry here and a function in options.hpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace echelon::cli {

// Runs the verb with the parsed options; returns the exit code or throws Error.
using Run = std::function<int()>;

// A verb: its name ("data import" is a verb of a family), one line of help, examples, and a function that declares its
// options on an App and returns the function to run after parsing.
struct Verb {
  const char* name;
  const char* help;
  const char* examples;
  Run (*declare)(CLI::App& app);
  bool takes_signals = false;   // the verb handles the signals that main holds back (job/signals.hpp)
  const char* alias = nullptr;  // an older name that is still accepted
};

std::span<const Verb> all_verbs();

}  // namespace echelon::cli
