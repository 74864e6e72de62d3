#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a make command and says after each compilation how many are left, and for how long by the pace so far.
#   build.sh MAKE WORD..
set -uo pipefail
files=$("$@" --dry-run 2> /dev/null | grep -cE '^echo "  (CXX|NVCC) ')
[ "${files:-0}" -gt 5 ] || exec "$@"
echo "$files files or groups of files to compile"
done=0
"$@" | while IFS= read -r line; do
  case $line in
    '  CXX '* | '  NVCC '*)
      left=''
      [ $done -gt 5 ] && left=", $(((SECONDS * (files - done) / done + 59) / 60)) min left"
      done=$((done + 1))
      echo "$line  [$done of $files$left]" ;;
    *) printf '%s\n' "$line" ;;
  esac
done
