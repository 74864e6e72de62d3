#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and running need, where they are missing. Without root or sudo it prints
# the one command and stops. A stamp in the build folder makes the second call free.
#   install_deps.sh BUILD              installs what the program needs
#   install_deps.sh BUILD --tests      also installs Debian packages and, in BUILD/venv, PyPI packages for tests.
#                                      Where they are not available it says so and ends with 0: tests are skipped;
#                                      where ECHELON_TEST_SKIPS does not permit "package" (CI), it ends with 3.
#   install_deps.sh BUILD --optional   installs nothing; says which tools of `make analyze` are missing
set -eu
build=$1 what=${2:-}
packages=(g++ make pkg-config git openmpi-bin libopenmpi-dev libhdf5-dev hdf5-tools libdnnl-dev libcli11-dev libtomlplusplus-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev libarchive-dev libjpeg-dev libpng-dev catch2 python3-h5py)
[ "$(uname -m)" = x86_64 ] || packages+=(libsimde-dev)  # base/vectors.hpp; on x86-64 only a build without AVX2 needs it
# These packages read the program's files. PyTorch is not among them: its wheel on PyPI brings 2 GB of CUDA.
python=(onnx onnxruntime tensorboard pandas mlperf-logging safetensors h5py)
if [ "$what" = --optional ]; then
  for package in clang-tidy cppcheck; do
    command -v "$package" > /dev/null ||
      echo "skipped: $package is not installed: sudo apt-get install $package$([ "$package" = cppcheck ] || echo ' libomp-dev')"
  done
  exit 0
fi
[ "$what" = --tests ] && packages=(slurm-wlm munge iproute2 python3-venv clang-format groff-base zstd)
stamp=$build/deps${what#-}.stamp
[ -e "$stamp" ] && [ "$stamp" -nt "$0" ] && exit 0
missing=() lacking=0
log=$(mktemp)  # a new file, because an old one may belong to another user
trap 'rm -f "$log"' EXIT

# without REASON..: a missing package ends a build, but only skips the tests that need it
without() {
  if [ "$what" = --tests ] && { [ -z "${ECHELON_TEST_SKIPS+set}" ] || [[ " $ECHELON_TEST_SKIPS " = *" package "* ]]; }; then
    echo "tests that need what follows are skipped: $*" >&2
    lacking=1
    return
  fi
  echo "$*" >&2
  exit 3
}

for package in "${packages[@]}"; do
  # Another package may provide the same program, as gnuplot-qt does.
  [ "$package" = gnuplot-nox ] && command -v gnuplot > /dev/null && continue
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    echo "installing: ${missing[*]}"
    bash -c "$command" > "$log" 2>&1 || { tail -20 "$log" >&2; without "Debian packages (no network?): ${missing[*]}"; }
  elif command -v sudo > /dev/null && sudo -n true 2>/dev/null; then
    echo "installing with sudo: ${missing[*]}"
    sudo bash -c "$command" > "$log" 2>&1 || { tail -20 "$log" >&2; without "Debian packages (no network?): ${missing[*]}"; }
  else
    without "packages are missing and neither root nor sudo is at hand. Have this run once, then try again:

  sudo sh -c '$command'
"
  fi
fi
mkdir -p "$build"
if [ "$what" = --tests ]; then
  echo "installing into $build/venv: ${python[*]}"
  { rm -rf "$build/venv" && /usr/bin/python3 -m venv "$build/venv" &&
    "$build/venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 "${python[@]}"; } > "$log" 2>&1 ||
    { tail -1 "$log" >&2; rm -rf "$build/venv"; without "Python packages of PyPI (no network?): ${python[*]}"; }
fi
[ $lacking = 1 ] || touch "$stamp"
