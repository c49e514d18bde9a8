#!/bin/sh
# Runs every fuzzer for a given number of executions, and prints what came of it:
#   tests/fuzz/run_all.sh FUZZERS FOLDER [READS] [SIMULATIONS] [SECONDS] [JOBS]
# FUZZERS: build/fuzz/tests/fuzz/fuzzers. FOLDER: for what is found, kept from run to run.
# READS: executions of readers, shared out among them (default 10,000,000); SIMULATIONS: of those
# that simulate what they accept (100,000). SECONDS: that an entry point may take at a time (3600).
# Exit code 1 after a crash, a leak or a time-out; its text lies in FOLDER/found.
set -u
[ $# -ge 2 ] || { sed -n 2,9p "$0"; exit 2; }
fuzzers=$(realpath "$1")
mkdir -p "$2/found"
folder=$(realpath "$2")
reads=${3:-10000000} simulations=${4:-100000} seconds=${5:-3600} jobs=${6:-$(nproc)}
"$fuzzers" --list >"$folder/list" || exit 2
readers=$(grep -c ' reads$' "$folder/list")
simulators=$(grep -c ' simulates$' "$folder/list")

cat >"$folder/one.sh" <<'END'
# ENTRY RUNS
new="$folder/new/$1"
mkdir -p "$new"
ORRERY_FUZZ=$1 "$fuzzers" --dictionary >"$folder/$1.dict"
ORRERY_FUZZ=$1 nice "$fuzzers" -runs="$2" -max_total_time="$seconds" -timeout=300 \
  -rss_limit_mb=4096 -mutate_depth=2 -close_fd_mask=1 -dict="$folder/$1.dict" \
  -artifact_prefix="$folder/found/$1-" "$new" \
  $(ORRERY_FUZZ=$1 "$fuzzers" --corpus) 2>"$folder/$1.log"
code=$?
figures=$(grep "^$1: .* executions" "$folder/$1.log" || echo "$1: 0 executions, 0 accepted")
[ $code -eq 0 ] && echo "$figures" || echo "$figures, FOUND $(grep -m1 SUMMARY "$folder/$1.log")"
END
export fuzzers folder seconds
# HOW RUNS: every entry point that does HOW, RUNS times each.
run_each() {
  sed -n "s/ $1\$/ $2/p" "$folder/list" | xargs -r -P "$jobs" -L 1 sh "$folder/one.sh" |
    tee -a "$folder/figures"
}

: >"$folder/figures"
run_each simulates $((simulations / simulators))
# What slow readers leave when their time is over goes to those that were done before.
left=$reads
while [ "$left" -gt $((reads / 1000)) ] && [ "$readers" -gt 0 ]; do
  runs=$((left / readers + 1))
  run_each reads $runs >"$folder/round"
  cat "$folder/round"
  left=$((left - $(awk '{ sum += $2 } END { print sum }' "$folder/round")))
  awk -v runs=$runs '$2 >= runs { sub(":", "", $1); print $1, "reads" }' "$folder/round" \
    >"$folder/list"
  readers=$(wc -l <"$folder/list")
done
awk '{ executions += $2; accepted += $4; found += /FOUND/ }
  END {
    printf "all: %d executions, %d accepted (%.0f %%), %d found something\n", executions, accepted,
           100 * accepted / (executions ? executions : 1), found
    exit found > 0
  }' "$folder/figures"
