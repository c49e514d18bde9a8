#!/bin/sh
# usage: node_lost_test.sh ORRERY SOURCE_TREE
#
# A sweep as an array on two nodes of a real Slurm, of which one is lost while it writes a shard:
# slurmd, the job's steps and Orrery end at once, unasked, as when a machine loses power. Slurm
# notices, sends the task to the other node, and the rows are those of a plain run. A node is a
# namespace of processes, which ends as a whole. Exits 77 where Slurm is not installed or namespaces
# are not allowed.
set -eu

orrery=$1
. "$(dirname "$0")/start_slurm.sh"

slurmd_below="unshare --pid --fork --kill-child --mount-proc"
$slurmd_below true 2>/dev/null || {
  echo "skipped: this user may not make a namespace of processes"
  exit 77
}
start_slurm 1 stays lost

cat >sweep.json <<JSON
{"schema": "orrery.sweep/1",
 "axes": {"model": "llama3-8b", "system": "dgx-h100", "gpus": 16, "tp": [1, 2], "pp": 2,
          "mbs": 1, "gbs": "16384..38912+512"}}
JSON
orrery sweep run sweep.json --output whole -j 2 >whole.txt
orrery sweep merge whole -o whole.jsonl >/dev/null

cat >sweep.sbatch <<'SH'
#!/bin/sh
exec orrery sweep run sweep.json --output sweep1 --shards 4 -j 1
SH

# Some rows of the shard that runs on the node are on the disk, and others are not.
writes_there() {
  task=$(squeue -h -r -t RUNNING -w lost -o %K)
  shard=sweep1/shard-0000$task-of-00004.jsonl
  [ -n "$task" ] && [ "$(grep -c '' "$shard.part")" -ge 3 ]
}

job=$(sbatch --parsable --requeue --array=0-3 sweep.sbatch)
until_succeeds writes_there
kill -KILL "$pid_of_lost"
[ ! -e "$shard" ] || fail "$shard was complete before its node was lost"
echo "node lost while it wrote shard $task of array $job"

until_succeeds sh -c 'sinfo -h -N -n lost -o %T | grep -q down'
until_succeeds sh -c "squeue -h -r -t PENDING -o %K | grep -qx $task"
code=0
missing=$(orrery sweep status sweep1 --missing) || code=$?
[ "$code" -eq 5 ] || fail "status --missing exits $code though a node was lost"
case ",$missing," in *"$task"*) ;; *) fail "missing are $missing" ;; esac
# Slurm lets a task that it sends again wait for two minutes.
scontrol update JobId="${job}_$task" StartTime=now
until_succeeds array_is_over

orrery sweep status sweep1 >status.txt || fail "status exits $?"
orrery sweep merge sweep1 -o sweep1.jsonl >sweep1.txt || fail "merge exits $?"
cmp whole.jsonl sweep1.jsonl || fail "the array's rows differ from a plain run's"
cmp whole.txt sweep1.txt || fail "the array's summary differs from a plain run's"
echo "$(grep -c '' sweep1.jsonl) lines, the same bytes as in a plain run"
