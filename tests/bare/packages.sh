#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# In a bare Debian 12 system, from the root of a checkout: installs Perdure's Debian packages from
# FOLDER with apt, uses them as their users would (the README's program by pkg-config and by CMake,
# with the shared and with the static library; the C interface; the perdure command; SQLite's
# extension), and purges them: no file of theirs may be left. `./dev bare --command package` runs
# it.
set -euo pipefail

say() { printf '==> %s\n' "$*"; }
die() { printf 'packages.sh: %s\n' "$*" >&2; exit 1; }
run() { printf '  $ %s\n' "$*"; "$@"; }
root=()
[[ $EUID -eq 0 ]] || root=(sudo)
apt() {
  run "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
    --no-install-recommends "$@" </dev/null
}

[[ $# -eq 1 && -f README.md ]] || die "expected the folder of the packages, and a checkout here"
readonly checkout=$PWD folder=$1
files=("$folder"/*.deb) packages=()
for file in "${files[@]}"; do packages+=("$(dpkg-deb --field "$file" Package)"); done
[[ ${packages[*]} =~ ^libperdure-dev\ libperdure[0-9.]+\ perdure-sqlite\ perdure-tools$ ]] ||
  die "found '${packages[*]}' in $folder, expected the four packages of ./dev package"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A user of the library has a compiler; what Perdure needs besides comes with its packages.
apt update
apt install gcc g++ libc6-dev pkg-config cmake make sqlite3
named_so() {  # all files and folders that have Perdure in their names, but for what lies here
  "${root[@]}" find / -xdev \
    \( -path /proc -o -path "$checkout" -o -path "$work" -o -path "$folder" \) -prune \
    -o -iname '*perdure*' -print 2>/dev/null
}
before=$(named_so)
[[ -z $before ]] || die "found files of Perdure before the installation: $before"

say "install"
apt install "${files[@]}"
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Package} ${Version} ${db:Status-Abbrev}\n' "$package"
  dpkg-query -L "$package" >>installed
done
PATH=$PATH:/usr/sbin ldconfig -p | grep libperdure

say "the README's program"
awk '/^```cpp$/ { inside = 1; next } inside && /^```$/ { exit } inside' "$checkout/README.md" \
  >shop.cpp
works() {  # works PROGRAM KIND: it prints what the README says, and has that kind of library
  local kind=static
  if readelf -d "$1" | grep -q 'NEEDED.*libperdure\.so\.'; then kind=shared; fi
  [[ $kind == "$2" ]] || die "$1: found the $kind library, expected the $2 one"
  run cmake -D "PROGRAM=$work/$1" -D "README=$checkout/README.md" -D "WORK=$work/run" \
    -P "$checkout/tests/readme/check_readme.cmake"
}
flags() { pkg-config "$@" perdure; }
# shellcheck disable=SC2046  # words on purpose
{
  run g++ -std=c++20 shop.cpp -o pc_shared $(flags --cflags --libs)
  run g++ -std=c++20 -static shop.cpp -o pc_static $(flags --static --cflags --libs)
  run gcc -std=c11 "$checkout/tests/install/consumer/main.c" -o pc_c $(flags --cflags --libs)
}
works pc_shared shared
works pc_static static
run ./pc_c
cat >CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(shop LANGUAGES CXX)
find_package(perdure 0.1 REQUIRED COMPONENTS ${KIND})
add_executable(shop shop.cpp)
target_link_libraries(shop PRIVATE perdure::perdure)
TEXT
for kind in shared static; do
  run cmake -S . -B "$kind" -D "KIND=$kind"
  run cmake --build "$kind"
  works "$kind/shop" "$kind"
done

say "the command"
run ./pc_shared
pool=$(ls ./*.perdure)
run perdure --help | head -5
run perdure check "$pool"
run gzip -t /usr/share/man/man1/perdure.1.gz

say "SQLite's extension"
vfs=$(dpkg-query -L perdure-sqlite | grep 'perdure_vfs\.so$')
sql() { run sqlite3 :memory: ".load ${vfs%.so}" ".open file:app.db?vfs=perdure" "$@"; }
sql "CREATE TABLE t(x);" "INSERT INTO t VALUES ('kept');"
sql "SELECT x FROM t;" | tee answer
grep -qx kept answer || die "found no row in the database that was opened again, expected 'kept'"
run perdure check app.db

say "purge"
apt purge "${packages[@]}"
left=$(named_so)
[[ -z $left ]] || die "found after the purge: $left"
while read -r path; do
  if [[ ! -d $path && ( -e $path || -L $path ) ]]; then die "found $path after the purge"; fi
done <installed
if dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' "${packages[@]}" 2>/dev/null |
    grep -v ' un '; then
  die "found packages that dpkg still knows, expected none"
fi
say "packages: installed, used and purged"
