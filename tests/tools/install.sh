#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build.
#   install.sh OUT PREFIX      OUT: the build folder (build/release); PREFIX: /usr/local or any folder; DESTDIR is honoured
#
#   PREFIX/bin/echelon                   PREFIX/lib/libechelon_cuda.so (where it was built; the executable looks in ../lib)
#   PREFIX/share/man/man1/echelon.1.gz   PREFIX/share/bash-completion/completions/echelon
#   PREFIX/share/modulefiles/echelon/VERSION.lua   a module: module use PREFIX/share/modulefiles; module load echelon. It
#                                loads the modules that were loaded here, with whose libraries the program is built
#   PREFIX/share/echelon/        the manual with its links and all examples: README.md, configs, slurm, data, pages and
#                                pictures of results; links to the source code become plain text
#   PREFIX/share/doc/echelon/    LICENSE, and README.md, which is a link to the one above
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
case $2 in /*) ;; *) echo "install: PREFIX must be an absolute path, not '$2'" >&2; exit 2 ;; esac
prefix=${DESTDIR:-}$2

install -D -m 755 "$out/bin/echelon" "$prefix/bin/echelon"
if [ -f "$out/bin/libechelon_cuda.so" ]; then
  install -D -m 755 "$out/bin/libechelon_cuda.so" "$prefix/lib/libechelon_cuda.so"
fi
# Without the tables of lines for debuggers, four fifths of it; call stacks keep their names of functions.
for file in "$prefix/bin/echelon" "$prefix/lib/libechelon_cuda.so"; do
  [ ! -f "$file" ] || strip --strip-debug "$file"
done
mkdir -p "$prefix/share/echelon"
for folder in configs slurm data; do
  [ -d "$folder" ] || continue
  # copies all but the files that a checkout gathers: runs, caches, hidden files
  tar -c --exclude='run-*' --exclude='__pycache__' --exclude='.*' "$folder" | tar -x -C "$prefix/share/echelon" --no-same-owner
done
mkdir -p "$prefix/share/man/man1" "$prefix/share/bash-completion/completions"
"$out/bin/echelon" manual | gzip -9n > "$prefix/share/man/man1/echelon.1.gz"
"$out/bin/echelon" completion bash > "$prefix/share/bash-completion/completions/echelon"
version=$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' src/base/version.hpp)
mkdir -p "$prefix/share/modulefiles/echelon"
cat > "$prefix/share/modulefiles/echelon/$version.lua" << END
help([[echelon $version: distributed training of neural networks over MPI ranks.
Manual: man echelon, and $2/share/echelon/README.md]])
whatis("Name: echelon")
whatis("Version: $version")
whatis("Description: trains networks from HDF5 data over MPI ranks, and measures whether that pays")
local root = "$2"
$(IFS=:; for module in ${LOADEDMODULES:-}; do echo "depends_on(\"$module\")"; done)
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
setenv("ECHELON_ROOT", root)
END
# The pages of results/ that its README names, and what they show; tables that a user's own reports wrote stay here.
named() { (cd results && grep -ohE '\]\([A-Za-z0-9_]+\.(md|svg|html)' "$@" | cut -c3- | sort -u); }
mapfile -t pages < <(named README.md)
mapfile -t shown < <(named README.md $(printf '%s\n' "${pages[@]}" | grep '\.md$'))
for file in README.md "${shown[@]}" scaling_paced.svg; do
  install -D -m 644 "results/$file" "$prefix/share/echelon/results/$file"
done
for file in README.md CHANGELOG.md CITATION.cff LICENSE cuda/README.md; do
  install -D -m 644 "$file" "$prefix/share/echelon/$file"
done
find "$prefix/share/echelon" -name '*.md' -exec \
  sed -i -E 's/\[([^]]*)\]\((\.\.\/)*(src|tests|\.github)\/[^)]*\)/\1/g' {} +
install -D -m 644 LICENSE "$prefix/share/doc/echelon/LICENSE"
ln -sfn ../../echelon/README.md "$prefix/share/doc/echelon/README.md"
echo "installed $prefix/bin/echelon; examples and manual in $prefix/share/echelon"
