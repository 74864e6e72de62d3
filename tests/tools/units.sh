#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Groups C++ files into units that are compiled as one: in a first build most of the time goes into what each file
# instantiates anew. Prints the sources to compile for the given files: units (OUT/units/ROOM/N.cpp) and single files.
#   tests/tools/units.sh OUT FILE..
# A file joins a unit of its room (src/NAME, tests/NAME) before it is first compiled, and leaves it for good when it is
# edited: whoever works on a file compiles that file alone. Files that define the same name in an unnamed namespace are
# in different units, and one that defines a name of a header is compiled alone, so that no file sees another's.
set -eu
readonly kLines=1000 # of a unit: more saves little, and a rebuild after an edited header takes longer
out=$1; shift
units=$out/units
mkdir -p "$units"
touch "$units/left"

declare -A left member printed
while read -r file; do left[$file]=1; done < "$units/left"
while read -r unit; do
  object=${unit%.cpp}.o kept='' gone=''
  while IFS=\" read -r _ file _; do
    if [ ! -e "$file" ] || { [ -e "$object" ] && [ "$file" -nt "$object" ]; }; then
      gone=1
      left[$file]=1
      echo "$file" >> "$units/left"
    else
      kept+="#include \"$file\""$'\n'
      member[$file]=$unit
    fi
  done < "$unit"
  [ -z "$gone" ] || printf '%s' "$kept" > "$unit"
done < <(find "$units" -name '*.cpp')

fresh=()
for file in "$@"; do
  unit=${member[$file]:-}
  if [ -n "$unit" ]; then
    [ -n "${printed[$unit]:-}" ] || echo "$unit"
    printed[$unit]=1
  elif [ -n "${left[$file]:-}" ] || [ -e "$out/obj/$file.o" ]; then
    echo "$file"
  else
    fresh+=("$file")
  fi
done
[ "${#fresh[@]}" -gt 0 ] || exit 0

# In formatted code, what a namespace defines begins in the first column.
awk -v units="$units" -v most=$kLines '
  BEGIN {  # functions of the C library, which other files of a unit may call
    n = split("accept access bind close connect dup index kill link listen open pipe poll read recv remove rename select send signal sleep stat sync time truncate wait write", c, " ")
    for (i = 1; i <= n; i++) public[c[i]] = 1
  }
  FNR == 1 { file = FILENAME; header = file ~ /\.hpp$/; inside = 0; if (!header) order[++files] = file }
  { lines[file]++ }
  /^namespace \{/ { inside = 1 }
  /^\}  \/\/ namespace$/ { inside = 0 }
  (inside || header) && /^[A-Za-z_]/ && !/^(namespace|template|public|private|using namespace)/ {
    head = $0
    sub(/[({=;\[].*/, "", head); sub(/ : .*/, "", head); sub(/ +$/, "", head); sub(/.*[ *&]/, "", head)
    if (head !~ /^[A-Za-z_][A-Za-z_0-9]*$/ || head !~ /[a-z]/) next
    if (header && (file ~ /^tests/ || /^(struct|class|enum|using) / || head ~ /^k[A-Z]/)) public[head] = 1
    if (!header) names[file] = names[file] " " head
  }
  function fits(unit, file,  i, n, all) {
    if (size[unit] + lines[file] > most) return 0
    n = split(names[file], all, " ")
    for (i = 1; i <= n; i++) if ((unit, all[i]) in taken || all[i] in public) return 0
    return 1
  }
  function add(unit, file,  i, n, all) {
    size[unit] += lines[file]
    count[unit]++
    text[unit] = text[unit] "#include \"" file "\"\n"
    only[unit] = file
    n = split(names[file], all, " ")
    for (i = 1; i <= n; i++) {
      taken[unit, all[i]] = 1
      if (all[i] in public) size[unit] = most
    }
  }
  END {
    for (f = 1; f <= files; f++) {
      split(order[f], path, "/")
      if (path[1] "/" path[2] != room) first = open + 1
      room = path[1] "/" path[2]
      for (u = first; u <= open && !fits(u, order[f]); u++) {}
      if (u > open) home[open = u] = room
      add(u, order[f])
    }
    for (u = 1; u <= open; u++) {
      if (count[u] == 1) { print only[u]; continue }
      if (!(home[u] in made)) system("mkdir -p " units "/" home[u])
      made[home[u]] = 1
      do name = units "/" home[u] "/" ++number[home[u]] ".cpp"; while ((getline line < name) > 0 && !close(name))
      printf "%s", text[u] > name
      close(name)
      print name
    }
  }' $(find src tests -name '*.hpp') "${fresh[@]}"
