#!/bin/sh
# usage: slurm_test.sh ORRERY SOURCE_TREE
#
# The lines of docs/guides/sweep.md on a real Slurm: munged, slurmctld and slurmd of one machine,
# started here and ended here. An array computes a sweep in shards, two of them are killed while
# they write, what is missing is submitted again, and the rows are those of a plain run. Exits 77
# where Slurm is not installed.
set -eu

orrery=$1
page=$2/docs/guides/sweep.md

. "$(dirname "$0")/start_slurm.sh"

# The block of the page that begins with a line.
block() { awk -v first="$1" '$0 == first {on = 1} on && /^```/ {exit} on' "$page"; }

start_slurm 2 here

# Half a minute of work in 240 points, so that a shard can be met while it is written.
cat >sweep.json <<JSON
{"schema": "orrery.sweep/1",
 "axes": {"model": "llama3-8b", "system": "dgx-h100", "gpus": 16, "tp": [1, 2], "pp": 2,
          "mbs": 1, "gbs": "16384..32000+256,32256..46848+256"}}
JSON
orrery sweep run sweep.json --output whole -j 2 >whole.txt
orrery sweep merge whole -o whole.jsonl >/dev/null

block '# sweep.sbatch' >block
[ -s block ] || fail "docs/guides/sweep.md has no sweep.sbatch"
{ echo '#!/bin/sh' && sed 's/0-99/0-5/; s/--shards 100/--shards 6/' block; } >sweep.sbatch

attempt=0
while :; do
  attempt=$((attempt + 1))
  [ "$attempt" -le 5 ] || fail "no shard could be killed while it was written"
  rm -rf sweep1
  job=$(sbatch --parsable sweep.sbatch)
  for shard in 1 4; do
    until_succeeds sh -c "ls sweep1/shard-0000$shard-of-00006.jsonl*"
    scancel --signal=KILL --full "${job}_$shard" 2>/dev/null || true
  done
  until_succeeds array_is_over
  code=0
  missing=$(orrery sweep status sweep1 --missing) || code=$?
  [ "$code" -eq 0 ] || break
done
echo "array $job: missing $missing after two kills (attempt $attempt)"
[ "$code" -eq 5 ] || fail "status --missing exits $code"
case $missing in 1 | 4 | 1,4) ;; *) fail "missing are $missing" ;; esac

# Twice, as a user would: the second time nothing is missing, and nothing may be submitted.
block 'missing=$(orrery sweep status sweep1 --missing)   # 3,17-20; exit code 5' >again
[ -s again ] || fail "docs/guides/sweep.md does not say how to submit again"
sh again >again.txt || fail "the lines that submit again"
grep -q 'Submitted batch job' again.txt || fail "nothing was submitted again"
until_succeeds array_is_over
[ -z "$(sh again)" ] || fail "submitted again though nothing was missing"

orrery sweep merge sweep1 -o sweep1.jsonl >sweep1.txt || fail "merge exits $?"
cmp whole.jsonl sweep1.jsonl || fail "the array's rows differ from a plain run's"
cmp whole.txt sweep1.txt || fail "the array's summary differs from a plain run's"
echo "240 points, the same bytes as in a plain run"
