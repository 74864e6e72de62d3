#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes train/ and test/ of this folder again from digits.csv.gz, as Debian's python3-sklearn carries it:
#   apt-get download python3-sklearn && dpkg -x python3-sklearn_*.deb sklearn
#   data/digits/make.sh sklearn/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz
set -eu
here=$(cd "$(dirname "$0")" && pwd)
echelon=${ECHELON:-$here/../../build/release/bin/echelon}
[ $# = 1 ] || { echo "usage: $0 digits.csv.gz" >&2; exit 2; }
rm -rf "$here/train" "$here/test"
"$echelon" data import csv "$1" --out "$here" --prefix digits --shape 1,8,8 --value-max 16 \
  --hold-out 297 --unequal 5,9,7,10,6,8,8,7 --chunk 64 --compress 6
