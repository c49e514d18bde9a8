#!/bin/sh
# usage: run_case.sh ORRERY CASE_FOLDER
#
# Runs orrery with the arguments in CASE_FOLDER/cmd in a copy of the folder and holds its exit code
# and stderr against CASE_FOLDER/expected (code on the first line). A refusal also has an empty
# stdout and leaves no file behind. The line `name MiB` in a file `make` asks for a file of blanks.
# UPDATE_GOLDEN=1 rewrites `expected`; read what it wrote.
set -eu

orrery=$1
case=$2

copy=$(mktemp -d)
work=$copy/case
trap 'rm -rf "$copy"' EXIT
mkdir "$work"
cp "$case"/* "$work"
rm -f "$work/cmd" "$work/expected" "$work/make"
cd "$work"
if [ -f "$case/make" ]; then
  read -r name mebibytes <"$case/make"
  head -c "$((mebibytes * 1024 * 1024))" /dev/zero | tr '\0' ' ' >"$name"
fi

fail() {
  printf '%s: %s\n' "$(basename "$case")" "$*"
  exit 1
}

find . | sort >../before
unset ORRERY_DATA
eval "set -- $(cat "$case/cmd")"
code=0
"$orrery" "$@" >../stdout 2>../stderr </dev/null || code=$?
find . | sort >../after

{
  echo "$code"
  cat ../stderr
} >../actual
case $code in
  2 | 3) ;;
  *)
    cat ../actual
    fail "exit code $code; bad input is 2, an infeasible plan 3"
    ;;
esac
[ ! -s ../stdout ] || fail "wrote to stdout: $(head -c 200 ../stdout)"
cmp -s ../before ../after || fail "left files behind: $(comm -13 ../before ../after)"

if [ "${UPDATE_GOLDEN-}" = 1 ]; then
  cp ../actual "$case/expected"
elif [ ! -f "$case/expected" ]; then
  fail "has no expected; record it with UPDATE_GOLDEN=1"
else
  diff -u "$case/expected" ../actual || fail "the refusal differs from expected"
fi
