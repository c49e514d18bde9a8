#!/bin/sh
# Puts today's validation tables into docs/ACCURACY.md.
#
#   tests/validation/update_accuracy.sh [--check] path/to/orrery
#
# --check: changes nothing, and fails where the document is stale.
set -eu
check=no
[ "${1-}" = --check ] && check=yes && shift
[ $# -eq 1 ] || { echo "usage: $0 [--check] path/to/orrery" >&2; exit 2; }
orrery=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.."
document=docs/ACCURACY.md
families="korthikanti sc21 megatron megascale simumax vtrain-multi mosaic torchtitan dgxc mbridge
  moezoo mcore zerobubble"
new=$(mktemp)
trap 'rm -f "$new"' EXIT
files=
for family in $families; do files="$files tests/validation/training/$family.json"; done
{
  sed '/<!-- generated: begin -->/q' "$document"
  # shellcheck disable=SC2086  # A list of files.
  "$orrery" validate --markdown $files
  sed -n '/<!-- generated: end -->/,$p' "$document"
} > "$new"
if [ "$check" = no ]; then
  cat "$new" > "$document"
elif ! diff -u "$document" "$new"; then
  echo "$document is stale: run tests/validation/update_accuracy.sh build/release/orrery" >&2
  exit 1
fi
