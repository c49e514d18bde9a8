#!/bin/sh
# usage: slurm_test.sh ORRERY SOURCE_TREE
#
# The lines of docs/CLUSTER.md on a real Slurm: munged, slurmctld and slurmd of one machine, started
# here and ended here. An array computes a sweep in shards, two of them are killed while they write,
# what is missing is submitted again, and the rows are those of a plain run. Exits 77 where Slurm is
# not installed.
set -eu

orrery=$1
page=$2/docs/CLUSTER.md

for program in munged slurmctld slurmd sbatch squeue scancel; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || {
    echo "skipped: $program is not installed (apt-get install slurmctld slurmd slurm-client munge)"
    exit 77
  }
done
PATH=$(dirname "$orrery"):$PATH:/usr/sbin
export PATH
# A test that runs inside a job must not be taken for one of its tasks.
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_COUNT SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE || true

work=$(mktemp -d)
daemons=
finish() {
  for daemon in $daemons; do kill "$daemon" 2>/dev/null || true; done
  for daemon in $daemons; do wait "$daemon" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() {
  echo "FAILED: $*"
  tail -n 15 ./*.log slurm-*.out 2>/dev/null || true
  exit 1
}

# Waits up to a minute for a command to succeed.
until_succeeds() {
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "never succeeded: $*"
    sleep 0.1
  done
}

start_slurm() {
  user=$(id -un)
  host=$(hostname -s)
  mkdir munge state spool
  chmod 700 munge
  head -c 1024 /dev/urandom >munge/key
  chmod 400 munge/key
  munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" \
    >munged.log 2>&1 &
  daemons="$daemons $!"
  until_succeeds test -S munge/socket
  chmod 755 munge # Others than this user must reach the socket.
  port=$((20000 + $$ % 20000))
  cat >slurm.conf <<CONF
ClusterName=orrery
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=1
MinJobAge=3600
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF="$work/slurm.conf"
  slurmctld -D >slurmctld.log 2>&1 &
  daemons="$daemons $!"
  slurmd -D -N "$host" >slurmd.log 2>&1 &
  daemons="$daemons $!"
  until_succeeds sh -c 'sinfo -h -o %T | grep -qx idle'
}

# The block of the page that begins with a line.
block() { awk -v first="$1" '$0 == first {on = 1} on && /^```/ {exit} on' "$page"; }

array_is_over() { [ -z "$(squeue -h -t PENDING,RUNNING,COMPLETING,CONFIGURING)" ]; }

start_slurm

# Three seconds of work in 24 points.
cat >sweep.json <<JSON
{"schema": "orrery.sweep/1",
 "axes": {"model": "llama3-8b", "system": "dgx-h100", "gpus": 16, "tp": [1, 2], "pp": 2,
          "mbs": 1, "gbs": "16384..27648+1024"}}
JSON
orrery sweep run sweep.json --out whole -j 2 >whole.txt
orrery sweep merge whole -o whole.jsonl >/dev/null

block '# sweep.sbatch' >block
[ -s block ] || fail "docs/CLUSTER.md has no sweep.sbatch"
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
[ -s again ] || fail "docs/CLUSTER.md does not say how to submit again"
sh again >again.txt || fail "the lines that submit again"
grep -q 'Submitted batch job' again.txt || fail "nothing was submitted again"
until_succeeds array_is_over
[ -z "$(sh again)" ] || fail "submitted again though nothing was missing"

orrery sweep merge sweep1 -o sweep1.jsonl >sweep1.txt || fail "merge exits $?"
cmp whole.jsonl sweep1.jsonl || fail "the array's rows differ from a plain run's"
cmp whole.txt sweep1.txt || fail "the array's summary differs from a plain run's"
echo "24 points, the same bytes as in a plain run"
