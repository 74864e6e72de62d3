#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a relocatable tar.xz for machines without the packages: the executable, every library and Open MPI component
# that it needs except glibc, the GPU driver and CUDA, and launchers that find them; no line tables for debuggers.
#   bundle.sh OUT [FILE]      OUT: the build folder (build/release); FILE: OUT/../echelon-<version>-<arch>.tar.xz
#
#   bin/       echelon, mpirun, orted and, with CUDA, echelon-cuda-tests: names of one launcher (launch.sh)
#   libexec/   the executables themselves      lib/   libraries; lib/openmpi, lib/pmix, lib/ucx: what they load at run time
#   etc/openmpi, share/openmpi, share/pmix     share/echelon, share/doc: as `make install`
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
version=$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' src/base/version.hpp)
name=echelon-$version-$(uname -m)
tar=${2:-$(dirname "$out")/$name.tar.xz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name

tests/tools/install.sh "$out" "$root" > /dev/null
mv "$root/bin" "$root/libexec"
mkdir -p "$root/bin" "$root/lib"
if [ -x "$out/tests/cuda" ] && [ -f "$root/lib/libechelon_cuda.so" ]; then
  cp "$out/tests/cuda" "$root/libexec/echelon-cuda-tests"
  install -m 755 tests/tools/gpu.sh "$root/bin/gpu.sh"
fi
find "$root/libexec" "$root/lib" -type f -exec strip --strip-debug {} +
for tool in mpirun orted; do cp "$(readlink -f "$(command -v $tool)")" "$root/libexec/$tool"; done
install -m 755 tests/tools/launch.sh "$root/bin/echelon"
ln -s echelon "$root/bin/ssh-clean"
for file in "$root"/libexec/*; do [ -e "$root/bin/${file##*/}" ] || ln -s echelon "$root/bin/${file##*/}"; done

# The components of Open MPI, PMIx and UCX are loaded by name at run time.
libs=$(dirname "$(ldd "$out/bin/echelon" | awk '$1 ~ /^libmpi\.so/ { print $3 }')")
where() { ompi_info --path "$1" --parsable | cut -d: -f3; }
components() { # FROM TO
  [ -d "$1" ] || return 0
  mkdir -p "$root/lib/$2"
  cp -P "$1"/*.so* "$root/lib/$2/"
}
mkdir -p "$root/etc" "$root/share"
components "$(where pkglibdir)" openmpi
rm -f "$root"/lib/openmpi/mca_{atomic,memheap,scoll,spml,sshmem}_*  # OpenSHMEM's
components "$libs/pmix2/lib/pmix" pmix
components "$libs/ucx" ucx
cp -rL "$(where pkgdatadir)" "$root/share/openmpi"
cp -rL "$(where sysconfdir)" "$root/etc/openmpi"
if [ -d "$libs/pmix2/share" ]; then
  cp -rL "$libs/pmix2/share" "$root/share/pmix2"
  # this line names a folder of this machine; the launcher says where the components are
  sed -i '/^ *mca_base_component_path/d' "$root"/share/pmix2/*.conf
fi

# Finds the closure of libraries as this machine's loader resolves it.
glibc='ld-linux|linux-vdso|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil|libanl|libnsl|libnss_[a-z]*|libthread_db'
gpu='libcuda|libcudart|libcudnn[a-z_]*|libcublas[A-Za-z]*|libnv[a-zA-Z-]*|libnccl'
find "$root/libexec" "$root/lib" -type f -exec ldd {} + 2> /dev/null |
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r soname path; do
    [[ $soname =~ ^($glibc|$gpu)[.-] ]] || [ -e "$root/lib/$soname" ] || cp -L "$path" "$root/lib/$soname"
  done
# libarchive reads one format, xar, by libxml2, which needs 31 MB of tables of ICU for other encodings of text. Nothing
# here reads xar: an empty table takes their place.
for tables in "$root"/lib/libicudata.so.*; do
  [ -e "$tables" ] || continue
  number=${tables##*.}
  echo "extern const char icudt${number}_dat[64]; const char icudt${number}_dat[64] = {0};" |
    ${CC:-cc} -shared -x c -Wl,-soname,"$(basename "$tables")" -o "$tables" -
done
missing=$(find "$root/libexec" "$root/lib" -type f -exec ldd {} + 2> /dev/null | awk '$3 == "not" { print $1 }' | sort -u | grep -vE "^($gpu)" || true)
[ -z "$missing" ] || { echo "bundle: not found on this machine:" $missing >&2; exit 1; }

tar -C "$work" -c "$name" | xz "-${BUNDLE_XZ_LEVEL:-6}" -T0 > "$tar.part"
mv "$tar.part" "$tar"
echo "$tar: $(du -h "$tar" | cut -f1), $(find "$root/lib" -type f | wc -l) libraries and components, needs glibc $(find "$root/libexec" "$root/lib" -type f -exec objdump -T {} + 2> /dev/null | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1 | cut -d_ -f2) or later"
