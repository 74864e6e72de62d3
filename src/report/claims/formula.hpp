// SPDX-License-Identifier: Apache-2.0
// Arithmetic expressions in the text of a claim: "2 * (k - 1) * G", "figure >= 0.99 * best".
//
//   comparison   sum [(< | <= | > | >= | ==) sum]        1 where it holds, else 0
//   sum          product {(+ | -) product}
//   product      signed {(* | /) signed}
//   signed       [-] power
//   power        atom [^ signed]
//   atom         number | name | function(sum, ..) | (comparison)
//
// Names consist of letters, digits, '_' and '.', as in `exchange.averaging.period`. Functions: log2, sqrt, floor, ceil,
// abs, min, max. An unknown value (NaN) makes the result unknown.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline report {

// Returns the value of a name, or NaN where it is unknown.
using NamedValue = std::function<double(const std::string& name)>;

// Throws ConfigError with the text, the column of the mistake and what was expected there.
void check_formula(std::string_view text);
double evaluate_formula(std::string_view text, const NamedValue& value);
// Returns every name in the text that is not a function, each once, in the order of the text.
std::vector<std::string> names_of_formula(std::string_view text);

}  // namespace echelon::inline report
