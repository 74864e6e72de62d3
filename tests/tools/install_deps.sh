#!/usr/bin/env bash
# Installs the Debian packages that building, testing and running need, where they are missing. Without root or sudo it prints
# the one command and stops. A stamp in the build folder makes the second call free.
#   install_deps.sh BUILD [--optional]    --optional: installs nothing, says which tools of `make analyze` are missing
set -eu
build=$1
packages=(g++ make pkg-config git openmpi-bin libopenmpi-dev libhdf5-dev hdf5-tools libdnnl-dev libcli11-dev libtomlplusplus-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev libjpeg-dev libpng-dev catch2 python3-h5py hdf5-plugin-lzf)
if [ "${2:-}" = --optional ]; then
  for package in clang-tidy cppcheck; do
    command -v "$package" > /dev/null ||
      echo "skipped: $package is not installed: sudo apt-get install $package$([ "$package" = cppcheck ] || echo ' libomp-dev')"
  done
  exit 0
fi
stamp=$build/deps.stamp
[ -e "$stamp" ] && [ "$stamp" -nt "$0" ] && exit 0
missing=()
log=$(mktemp)  # of the user who runs this, whoever ran it before
trap 'rm -f "$log"' EXIT
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" = 0 ]; then
    echo "installing: ${missing[*]}"
    bash -c "$command" > "$log" 2>&1 || { tail -20 "$log" >&2; exit 3; }
  elif command -v sudo > /dev/null && sudo -n true 2>/dev/null; then
    echo "installing with sudo: ${missing[*]}"
    sudo bash -c "$command" > "$log" 2>&1 || { tail -20 "$log" >&2; exit 3; }
  else
    printf 'Packages are missing and neither root nor sudo is at hand. Have this run once, then try again:\n\n  sudo sh -c '"'%s'"'\n' "$command" >&2
    exit 3
  fi
fi
mkdir -p "$build"
touch "$stamp"
