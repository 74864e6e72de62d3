#!/usr/bin/env bash
# Installs what was built.
#   install.sh OUT PREFIX      OUT: the build folder (build/release); PREFIX: /usr/local or any folder; DESTDIR is honoured
#
#   PREFIX/bin/echelon                   PREFIX/lib/libechelon_cuda.so (where it was built; the executable looks in ../lib)
#   PREFIX/share/echelon/{configs,slurm,data}        PREFIX/share/doc/echelon/{README.md,LICENSE}
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
case $2 in /*) ;; *) echo "install: PREFIX must be an absolute path, not '$2'" >&2; exit 2 ;; esac
prefix=${DESTDIR:-}$2

install -D -m 755 "$out/bin/echelon" "$prefix/bin/echelon"
if [ -f "$out/bin/libechelon_cuda.so" ]; then
  install -D -m 755 "$out/bin/libechelon_cuda.so" "$prefix/lib/libechelon_cuda.so"
fi
mkdir -p "$prefix/share/echelon"
for folder in configs slurm data; do
  [ -d "$folder" ] || continue
  # all but what a checkout gathers: runs, caches, hidden files
  tar -c --exclude='run-*' --exclude='__pycache__' --exclude='.*' "$folder" | tar -x -C "$prefix/share/echelon" --no-same-owner
done
for file in README.md LICENSE; do install -D -m 644 "$file" "$prefix/share/doc/echelon/$file"; done
echo "installed $prefix/bin/echelon; examples in $prefix/share/echelon"
