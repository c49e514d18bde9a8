#!/bin/sh
# usage: parallel_test.sh ORRERY SOURCE_TREE
#
# The line of docs/guides/sweep.md for GNU parallel. Exits 77 where it is not installed.
set -eu

orrery=$1
page=$2/docs/guides/sweep.md

command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q '^GNU parallel' || {
  echo "skipped: GNU parallel is not installed (apt-get install parallel)"
  exit 77
}
PATH=$(dirname "$orrery"):$PATH
export PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME="$work" # Where parallel keeps notes of its own.

cat >sweep.json <<JSON
{"schema": "orrery.sweep/1",
 "axes": {"model": "llama3-8b", "system": "dgx-h100", "gpus": 16, "tp": [1, 2, 3], "pp": [1, 2],
          "gbs": [16, 32]}}
JSON
orrery sweep run sweep.json --output whole >whole.txt
grep '^seq 0 99 | parallel' "$page" | sed 's/99/4/; s/100/5/' >line
[ -s line ] || { echo "docs/guides/sweep.md has no such line"; exit 1; }
sh line
orrery sweep merge sweep1 -o sweep1.jsonl >sweep1.txt
orrery sweep merge whole -o whole.jsonl >/dev/null
cmp whole.jsonl sweep1.jsonl
cmp whole.txt sweep1.txt
