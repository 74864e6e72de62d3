// SPDX-License-Identifier: Apache-2.0
// The indices of the arguments of recurrent ops in their signatures; -1: not present.
#pragma once

#include "device/op_spec.hpp"

namespace echelon::inline device {

struct RnnArgs {
  explicit RnnArgs(const OpSpec& spec) : RnnArgs(signature(spec)) {}

  int x = 0, weight_x = 1, weight_h = 2, bias_x = 3, bias_h = 4;
  int h0, c0, lengths;
  int y, hn, cn;
  int dy, dhn, dcn;
  int dx, dweight_x, dweight_h, dbias_x, dbias_h, dh0, dc0;

 private:
  explicit RnnArgs(const std::vector<ArgInfo>& args)
      : h0(argument_index(args, "h0")),
        c0(argument_index(args, "c0")),
        lengths(argument_index(args, "lengths")),
        y(argument_index(args, "y")),
        hn(argument_index(args, "hn")),
        cn(argument_index(args, "cn")),
        dy(argument_index(args, "dy")),
        dhn(argument_index(args, "dhn")),
        dcn(argument_index(args, "dcn")),
        dx(argument_index(args, "dx")),
        dweight_x(argument_index(args, "dweight_x")),
        dweight_h(argument_index(args, "dweight_h")),
        dbias_x(argument_index(args, "dbias_x")),
        dbias_h(argument_index(args, "dbias_h")),
        dh0(argument_index(args, "dh0")),
        dc0(argument_index(args, "dc0")) {}
};

struct RnnStepArgs {
  explicit RnnStepArgs(const OpSpec& spec) : RnnStepArgs(signature(spec)) {}

  int a, weight_h, bias_h, h, c, lengths;
  int h_next, c_next, gates;
  int hs, dc_next, dy, dh_next;
  int da, db, dh, dc;

 private:
  explicit RnnStepArgs(const std::vector<ArgInfo>& args)
      : a(argument_index(args, "a")),
        weight_h(argument_index(args, "weight_h")),
        bias_h(argument_index(args, "bias_h")),
        h(argument_index(args, "h")),
        c(argument_index(args, "c")),
        lengths(argument_index(args, "lengths")),
        h_next(argument_index(args, "h_next")),
        c_next(argument_index(args, "c_next")),
        gates(argument_index(args, "gates")),
        hs(argument_index(args, "hs")),
        dc_next(argument_index(args, "dc_next")),
        dy(argument_index(args, "dy")),
        dh_next(argument_index(args, "dh_next")),
        da(argument_index(args, "da")),
        db(argument_index(args, "db")),
        dh(argument_index(args, "dh")),
        dc(argument_index(args, "dc")) {}
};

}  // namespace echelon::inline device
