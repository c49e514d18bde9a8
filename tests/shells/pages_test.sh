#!/bin/sh
# Manual pages are free of what groff warns of, and man shows them. 77: groff is not installed.
# usage: pages_test.sh ORRERY
set -eu
orrery=$1
command -v groff >/dev/null 2>&1 || {
  echo "skipped: groff is not installed (apt-get install groff-base)"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$orrery" manual --output "$folder"
for page in "$folder"/*.1; do
  warnings=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
  if [ -n "$warnings" ]; then
    echo "$page: $warnings"
    exit 1
  fi
done
shown=$(groff -man -Tascii -P-cbou "$folder/orrery-estimate.1")
case $shown in
*"--model NAME|FILE"*"--no-timing"*"SEE ALSO"*) ;;
*)
  echo "a page does not show its options:"
  echo "$shown"
  exit 1
  ;;
esac
echo "$(ls "$folder" | wc -l) pages"
