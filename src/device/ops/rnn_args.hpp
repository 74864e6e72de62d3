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
      : h0(place_of(args, "h0")),
        c0(place_of(args, "c0")),
        lengths(place_of(args, "lengths")),
        y(place_of(args, "y")),
        hn(place_of(args, "hn")),
        cn(place_of(args, "cn")),
        dy(place_of(args, "dy")),
        dhn(place_of(args, "dhn")),
        dcn(place_of(args, "dcn")),
        dx(place_of(args, "dx")),
        dweight_x(place_of(args, "dweight_x")),
        dweight_h(place_of(args, "dweight_h")),
        dbias_x(place_of(args, "dbias_x")),
        dbias_h(place_of(args, "dbias_h")),
        dh0(place_of(args, "dh0")),
        dc0(place_of(args, "dc0")) {}
};

struct RnnStepArgs {
  explicit RnnStepArgs(const OpSpec& spec) : RnnStepArgs(signature(spec)) {}

  int a, weight_h, bias_h, h, c, lengths;
  int h_next, c_next, gates;
  int hs, dc_next, dy, dh_next;
  int da, db, dh, dc;

 private:
  explicit RnnStepArgs(const std::vector<ArgInfo>& args)
      : a(place_of(args, "a")),
        weight_h(place_of(args, "weight_h")),
        bias_h(place_of(args, "bias_h")),
        h(place_of(args, "h")),
        c(place_of(args, "c")),
        lengths(place_of(args, "lengths")),
        h_next(place_of(args, "h_next")),
        c_next(place_of(args, "c_next")),
        gates(place_of(args, "gates")),
        hs(place_of(args, "hs")),
        dc_next(place_of(args, "dc_next")),
        dy(place_of(args, "dy")),
        dh_next(place_of(args, "dh_next")),
        da(place_of(args, "da")),
        db(place_of(args, "db")),
        dh(place_of(args, "dh")),
        dc(place_of(args, "dc")) {}
};

}  // namespace echelon::inline device
