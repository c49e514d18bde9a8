# A Slurm of this machine's own for the test that reads this file (`. start_slurm.sh`): munged and
# slurmctld, and nodes that can be lost, each a slurmd. All of it ends with the test.
# Expects $orrery; leaves the test in an empty folder, $work. Exits 77 where Slurm is not installed.

for program in munged slurmctld slurmd sbatch squeue scancel scontrol; do
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
nodes=
finish() {
  for daemon in $daemons; do kill "$daemon" 2>/dev/null || true; done
  # unshare ignores SIGTERM, and its namespace ends with it.
  for node in $nodes; do kill ${slurmd_below:+-KILL} "$node" 2>/dev/null || true; done
  for daemon in $daemons $nodes; do wait "$daemon" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() {
  echo "FAILED: $*"
  for log in *.log slurm-*.out; do
    [ -f "$log" ] && echo "== $log" && tail -n 15 "$log"
  done
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

# start_slurm CPUS NODE...: nodes of this machine with so many CPUs each. The variable
# `slurmd_below` may hold a command that starts each slurmd; `pid_of_<node>` is set to its process.
start_slurm() {
  cpus=$1
  shift
  user=$(id -un)
  host=$(hostname -s)
  mkdir munge state
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
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=1
MinJobAge=3600
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  for node in "$@"; do
    port=$((port + 1))
    echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=$cpus State=UNKNOWN"
  done >>slurm.conf
  export SLURM_CONF="$work/slurm.conf"
  slurmctld -D >slurmctld.log 2>&1 &
  daemons="$daemons $!"
  for node in "$@"; do
    ${slurmd_below:-} slurmd -D -N "$node" >"slurmd-$node.log" 2>&1 &
    nodes="$nodes $!"
    eval "pid_of_$node=$!"
  done
  until_succeeds sh -c 'sinfo -h -N -o %T | sort -u | tr "\n" " " | grep -qx "idle "'
}

array_is_over() { [ -z "$(squeue -h -t PENDING,RUNNING,COMPLETING,CONFIGURING)" ]; }
