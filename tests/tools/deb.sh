#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of the build for the release that this machine runs: program, manual, examples, man page and
# completion below /usr. Its dependencies are the packages of the libraries that it is linked with.
#   deb.sh OUT      OUT: the build folder (build/release); writes OUT/../echelon_<version>_<arch>.deb, and a link
#                   echelon.deb to it
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
for tool in dpkg-deb dpkg-shlibdeps; do
  command -v $tool > /dev/null || { echo "deb: $tool is missing: apt-get install dpkg-dev" >&2; exit 3; }
done
version=$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' src/base/version.hpp)
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/DEBIAN" "$work/debian"
chmod 755 "$root"

DESTDIR=$root tests/tools/install.sh "$out" /usr > /dev/null
rm -rf "$root/usr/share/modulefiles"  # the program is on every PATH
doc=$root/usr/share/doc/echelon
mv "$doc/LICENSE" "$doc/copyright"
ln -sf ../../doc/echelon/copyright "$root/usr/share/echelon/LICENSE"
gzip -9nc CHANGELOG.md > "$doc/changelog.gz"
find "$root/usr" -type d -exec chmod 755 {} +
find "$root/usr/share" -type f ! -name '*.sh' -exec chmod 644 {} +

printf 'Source: echelon\n\nPackage: echelon\nArchitecture: %s\nDescription: echelon\n' "$arch" > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info root/usr/bin/echelon 2> "$work/log" |
  sed -n 's/^shlibs:Depends=//p') || { cat "$work/log" >&2; exit 1; }
launcher=openmpi-bin
case $depends in *libmpich*) launcher=mpich ;; esac
cat > "$root/DEBIAN/control" << END
Package: echelon
Version: $version
Architecture: $arch
Maintainer: The echelon authors <echelon@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $depends, $launcher
Suggests: slurm-client, openssh-client
Section: science
Priority: optional
Description: distributed training of neural networks over MPI ranks
 echelon trains convolutional and recurrent networks from HDF5 data with every
 common way of combining replicas, and reports, from measurement and with
 statistical tests, whether distributing pays, over how many nodes, and how.
END
(cd "$root" && find usr -type f -exec md5sum {} +) > "$root/DEBIAN/md5sums"
file=$(dirname "$out")/echelon_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$file" > /dev/null
ln -sf "$(basename "$file")" "$(dirname "$out")/echelon.deb"
echo "$file: $(du -h "$file" | cut -f1); needs $depends, $launcher"
