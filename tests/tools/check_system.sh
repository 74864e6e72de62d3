#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints what of slurm/packaging/needs.txt this machine has, with versions, and names the cure for what is missing or
# too old. Ends with 3 where something that the build needs is. Reads CXX, CPPFLAGS, MPI, MPICXX, ONEDNN, MARCH,
# CUDA_HOME and CUDNN_HOME, as `make` sets them.
set -u
cd "$(dirname "$0")/../.." || exit
: "${CXX:=c++}" "${MPI:=}" "${CPPFLAGS:=}" "${CUDA_HOME:=/usr/local/cuda}" "${CUDNN_HOME:=}" "${MARCH:=}"
good='' bad='' weak='' plain=''
[ -t 1 ] && good=$'\e[32m' bad=$'\e[31m' weak=$'\e[33m' plain=$'\e[0m'

compiler_version() { $CXX -dumpfullversion 2> /dev/null || $CXX -dumpversion; }
nvcc_version() { "$(command -v nvcc || echo "$CUDA_HOME/bin/nvcc")" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'; }
mpi_version() {
  local about; about=$(CXX=$CXX tests/tools/mpi.sh ${MPI:+"$MPI"} --about 2> /dev/null) || return 1
  note=$about
  # shellcheck disable=SC2046
  echo '#include <mpi.h>' | $CXX -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX $(tests/tools/mpi.sh ${MPI:+"$MPI"}) -x c++ -E -dM - 2> /dev/null |
    awk '/define MPI_VERSION / { a = $3 } /define MPI_SUBVERSION / { b = $3 } END { if (a) print a "." b }' > "$scratch"
}
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
macros() { # HEADER A.B.C
  local header=$1 all name text=''
  # shellcheck disable=SC2046,SC2086
  all=$(echo "#include <$header>" | $CXX -std=c++20 $CPPFLAGS ${ONEDNN:+-I$ONEDNN/include} -I"$CUDA_HOME/include" \
    ${CUDNN_HOME:+-I$CUDNN_HOME/include} $(pkg-config --cflags-only-I hdf5 2> /dev/null) -x c++ -E -dM - 2> /dev/null)
  for name in ${2//./ }; do
    text+=${text:+.}$(sed -n "s/^#define $name \([0-9]*\).*/\1/p" <<< "$all" | tail -1)
  done
  [[ $text =~ ^[0-9] ]] && echo "$text"
}
not_below() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$1" ]; }

failed=0 debian=() conda=() spack=()
printf '%-20s %-9s %-9s\n' what found needed
while IFS='|' read -r what least how package forge recipe needed; do
  case $what in '#'* | '') continue ;; esac
  [ "$needed" = arm ] && [[ $MARCH = x86-64-v[34]* || $MARCH = native || -z $MARCH ]] && [ "$(uname -m)" = x86_64 ] && continue
  version='' note=''
  case $how in
    pc:*) version=$(pkg-config --modversion "${how#pc:}" 2> /dev/null) ;;
    macro:*) how=${how#macro:}; version=$(macros "${how%%:*}" "${how#*:}") ;;
    run:mpi_version) mpi_version && version=$(cat "$scratch") ;;
    run:*) version=$(${how#run:} 2> /dev/null | grep -oE '[0-9]+(\.[0-9]+)*' | head -1) ;;
  esac
  colour=$good
  if [ "$what" = compiler ] && $CXX --version 2> /dev/null | grep -qi clang; then least=16 note=clang; fi
  if [ -z "$version" ]; then note=missing; elif ! not_below "$least" "$version"; then note="too old: $version"; fi
  if [ "$what" = 'Catch2, below 3' ] && [ -n "$version" ] && not_below 3 "$version"; then note='too new: tests need 2.13'; fi
  case $note in
    missing | too*)
      cure="apt-get install $package; conda install -c conda-forge $forge; spack install $recipe"
      [ -n "$package" ] || cure="conda install -c conda-forge $forge; spack install $recipe; make cuda CUDA_FROM=pypi"
      case $needed in
        build | arm) colour=$bad failed=1 note="$note. Cure: $cure" debian+=($package) conda+=("$forge") spack+=("$recipe") ;;
        *) colour=$weak note="$note, which only $needed needs: $cure" ;;
      esac ;;
  esac
  if [ "$what" = 'HDF5, serial' ] && [ "$(macros hdf5.h H5_HAVE_PARALLEL)" = 1 ]; then
    colour=$bad failed=1 note="this is the parallel HDF5 of one MPI, and needs its mpi.h everywhere. Cure: the serial one: module load a serial hdf5, or $package"
  fi
  printf '%s%-20s %-9s %-9s %s%s\n' "$colour" "$what" "${version:--}" "$least" "$note" "$plain"
done < slurm/packaging/needs.txt
if [ $failed = 1 ]; then
  printf '\nin one command, with what the machine offers:\n  apt-get install -y %s\n  conda install -c conda-forge %s\n  spack install %s\n' \
    "${debian[*]}" "${conda[*]}" "${spack[*]}"
  exit 3
fi
printf '\neverything that the build needs is here; next: make demo\n'
