// SPDX-License-Identifier: Apache-2.0
#include "report/claims/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline report {
namespace {

struct Function {
  const char* name;
  std::size_t arguments;
  double (*of)(double, double);
};
constexpr Function kFunctions[] = {
    {"log2", 1, [](double a, double) { return std::log2(a); }},
    {"sqrt", 1, [](double a, double) { return std::sqrt(a); }},
    {"floor", 1, [](double a, double) { return std::floor(a); }},
    {"ceil", 1, [](double a, double) { return std::ceil(a); }},
    {"abs", 1, [](double a, double) { return std::fabs(a); }},
    {"min", 2, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }},
    {"max", 2, [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }},
};

constexpr int kDeepest = 64;  // nesting limit of brackets, signs and powers

class Reader {
 public:
  Reader(std::string_view text, const NamedValue& value) : text_(text), value_(value) {}

  double whole() {
    const double result = comparison();
    if (at_ < text_.size()) fail("an operator");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw ConfigError(fmt::format("\"{}\", column {}: {} is expected here", text_, at_ + 1, expected));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view symbol) {
    skip_spaces();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  void need(std::string_view symbol) {
    if (!take(symbol)) fail(fmt::format("'{}'", symbol));
  }

  double comparison() {
    const double left = sum();
    const auto held = [&](auto compare) {
      const double right = sum();
      return std::isnan(left) || std::isnan(right) ? left + right : compare(left, right) ? 1.0 : 0.0;
    };
    if (take("<=")) return held([](double a, double b) { return a <= b; });
    if (take(">=")) return held([](double a, double b) { return a >= b; });
    if (take("==")) return held([](double a, double b) { return a == b; });
    if (take("<")) return held([](double a, double b) { return a < b; });
    if (take(">")) return held([](double a, double b) { return a > b; });
    return left;
  }

  double sum() {
    double result = product();
    for (;;)
      if (take("+"))
        result += product();
      else if (take("-"))
        result -= product();
      else
        return skip_spaces(), result;
  }

  double product() {
    double result = signed_power();
    for (;;)
      if (take("*"))
        result *= signed_power();
      else if (take("/"))
        result /= signed_power();
      else
        return result;
  }

  double signed_power() {
    if (++depth_ > kDeepest) fail("a formula with fewer nested parts");
    const bool negative = take("-");
    double result = negative ? -signed_power() : atom();
    if (!negative && take("^")) result = std::pow(result, signed_power());
    --depth_;
    return result;
  }

  double atom() {
    if (take("(")) {
      const double result = comparison();
      need(")");
      return result;
    }
    skip_spaces();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_]))) return named();
    fail("a number, a name or '('");
  }

  double number() {
    double result = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    if (error != std::errc()) fail("a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return result;
  }

  double named() {
    const std::size_t begin = at_;
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    while (at_ < text_.size() && part(text_[at_])) ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (!take("(")) return value_(name);
    const auto* function =
        std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const Function& f) { return f.name == name; });
    if (function == std::end(kFunctions)) {
      std::vector<std::string> known;
      for (const Function& f : kFunctions) known.emplace_back(f.name);
      at_ = begin;
      fail(unknown_name("function", name, known) + "; a function");
    }
    double arguments[2] = {sum(), 0};
    if (function->arguments == 2) {
      need(",");
      arguments[1] = sum();
    }
    need(")");
    return function->of(arguments[0], arguments[1]);
  }

  std::string_view text_;
  const NamedValue& value_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate_formula(std::string_view text, const NamedValue& value) { return Reader(text, value).whole(); }

void check_formula(std::string_view text) { (void)names_of_formula(text); }

std::vector<std::string> names_of_formula(std::string_view text) {
  std::vector<std::string> names;
  const NamedValue noted = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return std::numeric_limits<double>::quiet_NaN();
  };
  evaluate_formula(text, noted);
  return names;
}

}  // namespace echelon::inline report
