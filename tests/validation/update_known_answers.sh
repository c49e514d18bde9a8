#!/bin/sh
# Writes where published plans stand among all plans of their space into
# docs/reference/generated/known-answers.md.
#
#   tests/validation/update_known_answers.sh [--check] path/to/orrery
#
# --check: changes nothing, and fails where the document is stale.
set -eu
check=no
[ "${1-}" = --check ] && check=yes && shift
[ $# -eq 1 ] || { echo "usage: $0 [--check] path/to/orrery" >&2; exit 2; }
orrery=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.."
document=docs/reference/generated/known-answers.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# Model, GPUs, batch, tp, pp, vpp, micro-batch: Narayanan et al., SC'21, table 1, and Megatron-LM,
# examples/sc21/run_table_1.sh. The last: Megatron-LM's README of 2021.
runs="megatron-1.7b 32 512 1 1 1 16
megatron-3.6b 64 512 2 1 1 16
megatron-7.5b 128 512 4 1 1 16
megatron-18.4b 256 1024 8 1 1 8
megatron-39.1b 512 1536 8 2 1 4
megatron-76.1b 1024 1792 8 4 3 2
megatron-145.6b 1536 2304 8 8 2 2
megatron-310.1b 1920 2160 8 16 2 1
megatron-529.6b 2520 2520 8 35 3 1
megatron-1008b 3072 3072 8 64 1 1
gpt3-175b 1024 1536 8 8 1 1
gpt3-175b 1024 1536 8 16 1 1"

# One row of the table: a search lists the plans that take no longer than the published one.
row() {
  model=$1 gpus=$2 batch=$3 plan="--tp $4 --pp $5 --vpp $6 --mbs $7"
  where="--model $model --system dgx-a100-80gb --gpus $gpus --gbs $batch"
  # shellcheck disable=SC2086  # Lists of words.
  step=$("$orrery" estimate $where $plan --software megatron-2021 --recompute full --json |
    sed -n 's/^  "step_time_s": \(.*\),$/\1/p')
  # shellcheck disable=SC2086
  "$orrery" search $where --fix software=megatron-2021 --fix recompute=full --top 9999 \
    --all-settings --wide --max-memory 1 --tokens $((batch * 2048)) \
    --deadline "$(awk "BEGIN { printf \"%.9f\", $step * 1.000001 }")s" |
    awk -v step="$step" -v head="| $model | $gpus | $batch | tp$4 pp$5 vpp$6 mbs$7 |" '
      function degree(key, at) {
        at = match($0, " " key "[0-9]+")
        return at ? substr($0, at + 1 + length(key), RLENGTH - 1 - length(key)) : 1
      }
      / plans divide, / { fits = $4 }
      /^ *[0-9]+=? .* full *$/ {
        time = $2
        if (time >= step * 0.9999) next
        if (++faster == 1) best = sprintf("%.2f s: tp%d pp%d vpp%d mbs%d", time, degree("tp"),
                                          degree("pp"), degree("vpp"), degree("mbs"))
        if (time < step * 0.98) ++clearly
        if (degree("tp") <= 8 && (degree("pp") == 1 || degree("tp") == 8)) ++ruled
      }
      END { printf "%s %.2f s | %s | %d | %d | %d | %s |\n", head, step, fits, faster, clearly,
                   ruled, best == "" ? "none" : best }'
}

known_answers() {
  printf '| model | GPUs | batch | published | step '
  echo "| plans | faster | by 2 % | by their rule | fastest |"
  echo "|---|---:|---:|---|---:|---:|---:|---:|---:|---|"
  echo "$runs" | while read -r words; do
    # shellcheck disable=SC2086
    row $words
  done
}

{
  sed '/<!-- generated: known answers begin -->/q' "$document"
  known_answers
  sed -n '/<!-- generated: known answers end -->/,$p' "$document"
} > "$new"
if [ "$check" = no ]; then
  cat "$new" > "$document"
elif ! diff -u "$document" "$new"; then
  echo "$document is stale: run tests/validation/update_known_answers.sh build/release/orrery" >&2
  exit 1
fi
