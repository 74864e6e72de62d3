// Every verb of the command line, for args.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

namespace echelon::cli {

// Runs the verb with the options that were parsed; gives the exit code.
using Run = std::function<int()>;

// What a verb is: its name ("data import"), one line of help, examples, and how it declares its options on an App.
struct Verb {
  const char* name;
  const char* help;
  const char* examples;
  Run (*declare)(CLI::App& app);
};

std::span<const Verb> all_verbs();

}  // namespace echelon::cli
