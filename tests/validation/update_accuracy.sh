#!/bin/sh
# Writes today's validation tables into the pages of docs/reference/generated (training, the famous
# runs, serving), what to expect of a run into docs/explanation/accuracy.md, and what they amount to
# into README.md. First of all come the inputs of ranges: how far published steps are from
# predictions goes into calibration/data/published_steps.json, and what training adds to the errors
# of prices into calibration/data/price_errors.json.
#
#   tests/validation/update_accuracy.sh [--check] path/to/orrery
#
# --check: changes nothing, and fails where a page is stale.
set -eu
check=no
[ "${1-}" = --check ] && check=yes && shift
[ $# -eq 1 ] || { echo "usage: $0 [--check] path/to/orrery" >&2; exit 2; }
orrery=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/../.."
families="korthikanti sc21 megatron megascale simumax vtrain-multi mosaic torchtitan dgxc mbridge
  moezoo mcore zerobubble"
files=
for family in $families; do files="$files tests/validation/training/$family.json"; done

famous=tests/validation/training/famous.json
hybrid="tests/validation/training/hybrid.json tests/validation/training/automodel.json"
recent=$(echo tests/validation/recent/*.json)
finetuning=$(echo tests/validation/finetuning/*.json)
posttraining=$(echo tests/validation/posttraining/*.json)
fleets="tests/validation/fleets/wva.json tests/validation/fleets/tiers.json
  tests/validation/fleets/transfers.json tests/validation/fleets/starts.json
  tests/validation/fleets/agentx.json"
published="$files $famous $hybrid $recent $finetuning"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stale=no
# put FILE NEW: NEW takes FILE's place, or is compared with it.
put() {
  if [ "$check" = no ]; then
    cat "$2" > "$1"
  elif ! diff -u "$1" "$2"; then
    echo "$1 is stale: run tests/validation/update_accuracy.sh build/release/orrery" >&2
    stale=yes
  fi
}

# What was predicted does not depend on ranges: the table may be of another day.
# shellcheck disable=SC2086  # A list of files.
{
  echo '{'
  echo '  "schema": "orrery.published_steps/2",'
  printf '  "source": "orrery validate --json %s (docs/explanation/ranges.md)",\n' \
    'tests/validation/{training,recent,finetuning}/*.json'
  "$orrery" validate --json $published > "$work/published.json"
  sed -n '/^  "published_steps": {/,/^  }/s/^    "/  "/p' "$work/published.json"
  echo '}'
} > "$work/published"
grep -q '"described"' "$work/published" || {
  echo "$orrery validate --json: no published steps" >&2
  exit 1
}
put calibration/data/published_steps.json "$work/published"

errors=calibration/data/price_errors.json
# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --json $files |
  sed -n '/^  "training_errors": \[/,/^  \]/s/.*"error": //p' > "$work/training"
awk -v file="$work/training" '
  /^  \{"experts"/ {
    getline error < file
    sub(/"error": [0-9.]+/, sprintf("\"error\": %.3f", error))
  }
  {print}' "$errors" > "$work/errors"
put "$errors" "$work/errors"

# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $files > "$work/all"
sed '/^### /,$d' "$work/all" > "$work/summary"
sed -n '/^### /,$p' "$work/all" | sed 's/^###/##/' > "$work/rows"
[ -s "$work/summary" ] && [ -s "$work/rows" ] || {
  echo "$orrery validate --markdown: no summary or no rows" >&2
  exit 1
}

# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $hybrid $recent > "$work/recent"
# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $finetuning > "$work/finetuning"
# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $posttraining > "$work/posttraining"
# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $fleets > "$work/fleets"
# shellcheck disable=SC2086  # A list of files.
"$orrery" validate --markdown $published | sed -n '/^| ranges /,/^$/p' | sed '/^$/d' \
  > "$work/ranges"
[ -s "$work/ranges" ] || {
  echo "$orrery validate --markdown: no table of ranges" >&2
  exit 1
}
"$orrery" validate --markdown "$famous" | sed '/^### /d; /^| all /d' > "$work/famous"
"$orrery" validate --json tests/validation/inference/*.json > "$work/serving.json"
"$orrery" validate --markdown tests/validation/inference/*.json | sed '/^### /,$d' > "$work/serving"

sed -n '/^| ranges /,/^$/p' "$work/serving" | sed '/^$/d' > "$work/serving-ranges"
[ -s "$work/serving-ranges" ] || {
  echo "$orrery validate --markdown: no table of ranges of serving" >&2
  exit 1
}

python3 tests/validation/expectations.py training "$work/published.json" > "$work/expected"
python3 tests/validation/expectations.py serving "$work/serving.json" > "$work/expected-serving"

# "| family | predicted | ... |" gives each family's steps and mean error, the row "all" of the
# table of ranges how many lie in them.
awk -F ' *[|] *' '
  $2 == "family" {table = $3}
  table == "predicted" && $5 ~ /%/ {
    mean = $5 + 0
    for (at = ++families; at > 1 && means[at - 1] > mean; --at)
      means[at] = means[at - 1]
    means[at] = mean
    steps += $3
    errors += $3 * mean
  }
  table == "half-width" && $2 == "all" {in_range = $4}
  END {
    if (in_range == "") exit 1
    sub(/ of .*/, "", in_range)
    printf "Of %d step times in %d families of runs, %d lie in the predicted range.\n", steps,
           families, in_range
    printf "The mean error is %.1f %%; by family it is %.1f to %.1f %%, ", errors / steps,
           means[1], means[families]
    printf "%.1f %% in the median one.\n", means[int((families + 1) / 2)]
  }' "$work/summary" > "$work/in_short"

# The page with the part between its marks, `<!-- generated: MARK begin -->` and `... end -->`,
# replaced or compared.
page() {
  document=$1 mark=$2 tables=$3
  {
    sed "/<!-- generated: $mark begin -->/q" "$document"
    cat "$tables"
    sed -n "/<!-- generated: $mark end -->/,\$p" "$document"
  } > "$work/new"
  put "$document" "$work/new"
}
generated=docs/reference/generated
cat "$work/rows" >> "$work/summary"
page README.md accuracy "$work/in_short"
page docs/explanation/accuracy.md training "$work/expected"
page docs/explanation/accuracy.md serving "$work/expected-serving"
page $generated/accuracy-training.md training "$work/summary"
page $generated/accuracy-famous.md famous "$work/famous"
page $generated/accuracy-recent.md recent "$work/recent"
page $generated/accuracy-finetuning.md finetuning "$work/finetuning"
page $generated/accuracy-posttraining.md posttraining "$work/posttraining"
page docs/explanation/ranges.md ranges "$work/ranges"
page docs/explanation/ranges.md serving-ranges "$work/serving-ranges"
page $generated/accuracy-serving.md serving "$work/serving"
page $generated/accuracy-serving.md fleets "$work/fleets"
[ "$stale" = no ]
