#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the house rules that a program can see. Each rule is a function that prints violations; silence is a pass.
set -u
cd "$(dirname "$0")/../.."
sources() { git ls-files --cached --others --exclude-standard 'src/*' 'cuda/*' 'tests/*' | grep -E '\.(cpp|hpp|cu|cuh)$' | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
passed=0 failed=0 skipped=0

# Includes go down the ladder only; rooms on one level never include each other (src/README.md).
ladder() {
  sources | grep '^src/' | xargs awk '
    BEGIN {
      split("base:0 config:1 device:1 h5:1 data:2 model:2 optim:2 comm:2 report:2 parallel:3 exchange:3 job:3 study:3 checkpoint:4 fault:4 planner:4 train:5 inference:6 run:6 verify:6 cli:7", rooms, " ")
      for (i in rooms) { split(rooms[i], p, ":"); level[p[1]] = p[2] }
    }
    FNR == 1 { split(FILENAME, part, "/"); room = part[2]; if (room ~ /\.cpp$/) room = "cli" }
    /^#include "/ {
      split($2, q, "\""); split(q[2], target, "/"); to = target[1]
      if (!(to in level)) { print FILENAME ":" FNR ": includes \"" q[2] "\", which is in no room"; next }
      if (to == room || (room == "cli")) next
      if (level[to] >= level[room]) print FILENAME ":" FNR ": " room " (level " level[room] ") includes " to " (level " level[to] ")"
    }'
}

# Every room has a namespace of its own: `namespace echelon::inline <room>`; echelon::h5, echelon::cli, echelon::verify.
room_namespaces() {
  sources | grep '^src/[a-z0-9]*/' | xargs awk '
    FNR == 1 { split(FILENAME, part, "/"); room = part[2] }
    /^namespace echelon/ && $0 !~ "^namespace echelon::(inline )?" room "(::[a-z0-9_:]+)? \\{" {
      # A forward declaration opens the namespace of the room that defines the type.
      if ($0 ~ /^namespace echelon::inline [a-z0-9]+ \{$/ && (getline next_line) > 0 && next_line ~ /^(class|struct) [A-Za-z0-9]+;$/) next
      print FILENAME ":" FNR ": opens another namespace than that of its room" }'
}

# No type and no function may have the same name in the headers of two rooms, except overload sets of one meaning.
OVERLOADS='name_of device_options part_of for_each_run'
one_name_one_room() {
  sources | grep -E '^src/.*\.hpp$' | xargs awk -v overloads="$OVERLOADS" '
    BEGIN { split(overloads, list, " "); for (i in list) meant[list[i]] = 1 }
    FNR == 1 { split(FILENAME, part, "/"); room = part[2]; nested = 0 }
    /^namespace echelon::/ { nested = $0 !~ "^namespace echelon::inline " room " \\{" && room !~ /^(h5|cli|verify)$/; if (room ~ /^(h5|cli|verify)$/) nested = 0 }
    /^namespace [a-z_]+ \{/ { nested = 1 }
    /^\}  \/\/ namespace [a-z_]+$/ { nested = 0 }
    { name = "" }
    !nested && /^(class|struct|enum class|union) [A-Z][A-Za-z0-9]*[^;]*\{/ {
      name = $0; sub(/^(class|struct|enum class|union) /, "", name); sub(/[^A-Za-z0-9].*/, "", name) }
    !nested && room != "h5" && /^[A-Za-z_][A-Za-z0-9_:<>,&* ]* [&*]*[a-z_][a-z0-9_]*\(/ && !/^(return|using|namespace|friend|static_assert)/ {
      name = $0; sub(/\(.*/, "", name); sub(/.*[ &*]/, "", name) }
    name != "" && !(name in meant) && !((name, room) in seen) {
      seen[name, room] = 1; if (++n[name] > 1) print FILENAME ":" FNR ": " name " is a name of another room too:" where[name]; where[name] = where[name] " " FILENAME }'
}

# The two families of strategies share what lies above them and never include each other.
strategy_families() {
  sources | grep '^src/exchange/allreduce/' | xargs grep -nE '#include "exchange/server/' /dev/null
  sources | grep '^src/exchange/server/' | xargs grep -nE '#include "exchange/allreduce/' /dev/null
}

# Only a strategy's own folder compares with its name: elsewhere its traits or its entry answer. The key `asynchronous`
# of a search (study/parse.cpp) is no strategy.
strategy_names() {
  local entry folder name
  for entry in src/exchange/*/entry.cpp; do
    folder=$(dirname "$entry")
    grep -qF ".family = \"${folder##*/}\"" "$entry" || echo "$entry: declares another family than its folder"
    for name in $(sed -nE 's/^const StrategyEntry ([a-z_]+)_entry\{.*/\1/p' "$entry"); do
      sources | grep '^src/' | grep -vE "^$folder/" |
        xargs grep -nE "[=!]= *\"$name\"|\"$name\" *[=!]=|strategy_(traits|entry)\(\"$name\"\)" /dev/null |
        grep -vE 'key [=!]= "' | sed "s|\$|   (a property of strategy $name can answer)|"
    done
  done
}

# A library is included in one room only.
one_room() { # pattern room-regex name
  sources | grep -vE "$2" | xargs grep -nE "#include [<\"]($1)" 2>/dev/null | sed "s|\$|   ($3 belongs elsewhere)|"
}
libraries() {
  one_room 'mpi\.h' '^src/comm/mpi/|^tests/mpi/' MPI
  one_room 'dnnl|oneapi/dnnl' '^src/device/onednn/' oneDNN
  one_room 'hdf5|H5' '^src/h5/|^tests/unit/h5/|^tests/fuzz/foreign_files' HDF5
  one_room '(cuda|cudnn|cublas|nccl)[a-zA-Z0-9_]*\.h>' '^cuda/|^tests/cuda/|^tests/cuda_calls/|^tests/cuda_on_cpu/' CUDA
  one_room 'toml\+\+|toml\.hpp' '^src/config/' toml++
  one_room 'CLI/' '^src/cli/args' CLI11
  one_room 'archive(_entry)?\.h>' '^src/data/import/archive\.cpp|^tests/' libarchive
  one_room 'jpeglib\.h|jerror\.h' '^src/data/import/jpeg\.cpp|^tests/' libjpeg
  one_room 'png\.h' '^src/data/import/png\.cpp|^tests/' libpng
  one_room 'spdlog' '^src/base/log\.cpp' spdlog
  sources | grep '^src/' | xargs grep -nE '#include "(cuda|tests)/' 2>/dev/null
}

# Every MPI is served alike: names of one library stand in its room, and in the table of launchers.
one_mpi() {
  sources | grep -E '^(src|cuda)/' | grep -vE '^src/comm/mpi/|^src/base/launchers\.' |
    xargs grep -nE '\b(OMPI|OPAL|PMIX|PRTE|MPIX|I_MPI|MPIR|PMI)_|\b(btl|orte|opal)_' /dev/null |
    sed 's|$|   (src/comm/mpi or src/base/launchers)|'
}

# Vector instructions have two doors: vectors.hpp up to AVX2, for every processor; intrinsics.hpp for x86-64 alone.
intrinsics() {
  sources | grep -vE '^src/base/(intrinsics|vectors)\.hpp$' | xargs grep -nE '#include [<"]([a-z]*mmintrin\.h|immintrin|x86intrin|arm_(neon|sve|acle)|simde/)' /dev/null |
    sed 's|$|   (base/intrinsics.hpp or base/vectors.hpp)|'
}

# Rooms are namespaces: of two classes of one name in headers of a room, the linker would keep one destructor.
one_class_a_name() {
  for room in src/*/; do
    { find "$room" -name '*.hpp' -print0 | xargs -0 grep -hE '^(class|struct) [A-Z][A-Za-z0-9]+( final)?( :| \{)' || true; } |
      awk '{ print $2 }' | sort | uniq -d | sed "s|^|$room: two headers define |"
  done
}

# The line of the licence does not count.
long_files() { sources | xargs wc -l | awk '$2 != "total" && $1 > 351 { print $2 ": " $1 - 1 " lines, more than 350" }'; }
licence() { { sources; git ls-files '*.sh' '*.py' '*.sbatch' Makefile .ci/run; } | xargs awk 'FNR == 1 { if (seen && !licensed) print file ": no SPDX line"; file = FILENAME; seen = 1; licensed = 0 } FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { licensed = 1 } END { if (!licensed) print file ": no SPDX line" }'; }
# Rows of a table, between clang-format off and on, may be longer.
long_lines() { sources | xargs awk '/clang-format off/ { table = 1 } /clang-format on/ || FNR == 1 { table = 0 } length($0) > 120 && !table { print FILENAME ":" FNR ": " length($0) " columns, more than 120" }'; }
pragma_once() { sources | grep -E '\.(hpp|cuh)$' | xargs grep -L '#pragma once' | sed 's|$|: no #pragma once|'; }

# Alternatives are files, not #if: src/ may have at most one conditional in a thousand lines.
conditionals() {
  local found lines
  found=$(sources | grep '^src/' | xargs grep -nE '^#\s*(if|ifdef|ifndef|elif)\b')
  lines=$(sources | grep '^src/' | xargs cat | wc -l)
  [ "$(printf '%s' "$found" | grep -c .)" -gt $((lines / 1000 + 1)) ] && echo "$found"
}

# Every all-reduce that is registered by name is documented by name.
price_list() {
  local list=configs/strategies/ALLREDUCE.md
  sed -nE 's/.*#define ECHELON_(DEVICE_)?ALLREDUCE\(X\)//p' src/comm/collective/algorithms.hpp | grep -oE 'X\([a-z_]+\)' | tr -d 'X()' |
    while read -r name; do grep -qE "^\| *\`$name\`" "$list" 2>/dev/null || echo "$list: no row for the all-reduce \`$name\`"; done
}

# Rules for pages: links are looked for outside of ``` fences; every line counts for the width.
pages() { git ls-files --cached --others --exclude-standard '*.md' | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
page_lines() { pages | xargs awk 'length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns, more than 120" }'; }
page_links() { # [text](path) and ![text](path), relative to the page; skips web addresses and anchors of the page
  pages | while read -r page; do
    awk '/^ *```/ { fence = !fence; next } !fence { gsub(/`[^`]*`/, ""); while (match($0, /\]\([^)]+\)/)) {
      print FNR "\t" substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH) } }' "$page" |
      while IFS=$'\t' read -r line target; do
        case $target in *://* | mailto:* | \#*) continue ;; esac
        [ -e "$(dirname "$page")/${target%%#*}" ] || echo "$page:$line: no file $target"
      done
  done
}
# Every answer of "To change X, go to Y" must be a file of src/.
page_index() {
  awk '/^## / { wanted = /To change X/ } wanted && /^\|/ { print FNR "\t" $0 }' src/README.md |
    while IFS=$'\t' read -r line row; do
      grep -oE '`[a-z0-9_/]+(\.[a-z]+|/)`' <<< "$row" | tr -d '`' | while read -r file; do
        [ -e "src/$file" ] || echo "src/README.md:$line: no file src/$file"
      done
    done
}

unfinished() { sources | xargs grep -nEi '\b(TODO|FIXME|XXX|HACK)\b|not implemented'; }
map_is_current() {
  for room in src/*/; do grep -qF "\`$(basename "$room")/\`" src/README.md || echo "src/README.md: does not speak of $room"; done
}
# clang-format 14 warns of every closing comment of an inline namespace, though it writes the same text again.
formatting() {
  sources | xargs clang-format --dry-run 2>&1 |
    awk '/warning|error/ { held = $0; next } held && !/^\}  \/\/ namespace echelon::inline / { print held } { held = "" }' | head -20
}

rule() { # name function
  local out; out=$($2)
  if [ -z "$out" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); printf 'lint: %s\n%s\n' "$1" "$out"; fi
}
rule 'includes go down the ladder' ladder
rule 'each room in its namespace' room_namespaces
rule 'one name, one room' one_name_one_room
rule 'families of strategies apart' strategy_families
rule 'no strategy by name' strategy_names
rule 'each library in its room' libraries
rule 'no names of one MPI' one_mpi
rule 'intrinsics behind two headers' intrinsics
rule 'files of at most 350 lines' long_files
rule 'files name their licence' licence
rule 'lines of at most 120 columns' long_lines
rule 'headers say #pragma once' pragma_once
rule 'pages of at most 120 columns' page_lines
rule 'links of pages lead to files' page_links
rule 'the index of src/README.md names files' page_index
rule 'few conditionals' conditionals
rule 'one class a name' one_class_a_name
rule 'every algorithm has a price' price_list
rule 'nothing left undone' unfinished
rule 'the map of src/ is current' map_is_current
if clang-format --version 2>/dev/null | grep -q 'version 14'; then rule 'formatted' formatting
else
  skipped=1
  echo 'skipped for package: "formatting" needs clang-format 14' | tee -a "${ECHELON_TEST_SUMMARY:-/dev/null}"
fi

line="$passed passed, $failed failed, $skipped skipped"
echo "lint: $line"
[ -n "${ECHELON_TEST_SUMMARY:-}" ] && echo "lint: $line" >> "$ECHELON_TEST_SUMMARY"
[ $failed -eq 0 ]
