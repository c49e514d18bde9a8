#!/bin/sh
# usage: search_test.sh ORRERY SOURCE_TREE
#
# The search of docs/guides/search.md on a real Slurm of four nodes, of this machine: in 8 and in
# 32 shards it finds what one search finds, also after two of them are lost and submitted again.
# Exits 77 where Slurm is not installed.
set -eu

orrery=$1
page=$2/docs/guides/search.md

. "$(dirname "$0")/start_slurm.sh"

# The block of the page that begins with a line.
block() { awk -v first="$1" '$0 == first {on = 1} on && /^```/ {exit} on' "$page"; }

start_slurm 2 one two three four

block '# search.sbatch' >block
[ -s block ] || fail "docs/guides/search.md has no search.sbatch"
words=$(sed -n 's/^exec orrery \(search .*\) --output found$/\1/p' block)
[ -n "$words" ] || fail "docs/guides/search.md does not search for --output found"
# shellcheck disable=SC2086  # A list of words.
orrery $words >whole.txt
# What is listed; how many plans are simulated depends on who ran beside whom.
listed() { grep -v -e ' simulated' -e 'ruled out' "$1"; }

for shards in 8 32; do
  rm -rf found
  each="s/0-7/0-$((shards - 1))/; s/cpus-per-task=2/cpus-per-task=1/"
  { echo '#!/bin/sh' && sed "$each" block; } >search.sbatch
  sbatch search.sbatch >/dev/null
  until_succeeds array_is_over
  last=$(find found -name 'search-*.json' | sort | tail -n 1)
  head -c 200 "$last" >cut && cp cut "$last"
  orrery search --merge found >merged.txt 2>missing.txt && fail "a damaged shard was put together"
  grep -q "$last: is no shard of a search, or damaged" missing.txt || fail "$(cat missing.txt)"
  rm "$last" found/search-00001-of-*
  orrery search --merge found >merged.txt 2>missing.txt && fail "two shards of $shards are missing"
  missing=$(sed -n 's/.*shards are missing, of [0-9]*: \([0-9,-]*\);.*/\1/p' missing.txt)
  [ "$missing" = "1,$((shards - 1))" ] || fail "merge says: $(cat missing.txt)"
  sbatch --array="$missing" search.sbatch >/dev/null
  until_succeeds array_is_over
  orrery search --merge found >merged.txt || fail "merge of $shards shards exits $?"
  listed whole.txt >whole.list
  listed merged.txt >merged.list
  cmp whole.list merged.list || fail "$shards shards find something else than one search"
  [ -z "$(find found -name '*.part')" ] || fail "shards left what they said"
done
echo "8 and 32 shards, the list of one search"
