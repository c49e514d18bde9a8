#!/bin/sh
# All that one GPU can tell, in one command; what is done already is passed over.
#
#   calibration/one_gpu.sh FOLDER [BUDGET]      BUDGET of the kernels, default 5m; 0: fit only
#
# builds orrery-gpu in build/gpu of this checkout (CMake, a C++20 compiler, CUDA), and leaves in
# FOLDER
#   info.txt          the GPU, driver, libraries
#   record-1.json     kernels, the clock under load, launches, training steps; a call more is a file
#                     more, with what is missing in the others
#   fit.txt, calibration.json, achieved.svg     what comes of it, and how far the project's own
#                     tables of this GPU are from it
#   step.txt          the training steps predicted from the record, and from the project's tables
# With the default it takes under eight minutes, building included. A call may be killed at any
# time, and the next one may run on another machine with such a GPU: records are joined. The last
# two need orrery (from $ORRERY, build/*/ or the PATH). From a machine without it, carry FOLDER to
# one that has it and run this again there; it needs no GPU then.
#
# ORRERY_GPU names an orrery-gpu that is built already. Exit code: 0, or that of what went wrong; 77
# without a usable GPU and without records.
set -eu

folder=${1:?usage: calibration/one_gpu.sh FOLDER [BUDGET]}
budget=${2:-5m}
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"

say() { echo "== $*" >&2; }

# Without the folder, whose name may have spaces.
records() { (cd "$folder" && find . -maxdepth 1 -name 'record-*.json' | sed 's|^./||' | sort -V); }

build() {
  if [ -n "${ORRERY_GPU:-}" ]; then
    gpu=$ORRERY_GPU
    return
  fi
  build=$source/../build/gpu
  mkdir -p "$build" 2> /dev/null && [ -w "$build" ] || build=$folder/build
  gpu=$build/orrery-gpu
  [ -x "$gpu" ] && return
  say "building orrery-gpu in $build"
  { cmake -S "$source" -B "$build" -DORRERY_CUDA=ON &&
    cmake --build "$build" --target orrery-gpu -j "$(nproc)"; } > "$folder/build.log" 2>&1 ||
    { tail -20 "$folder/build.log" >&2; return 1; }
}

# Goes on behind a case after which the GPU no longer answers (exit code 6), five times at most.
# Failed cases (5) are in the record and in the fit's notes. What other calls measured is left out.
measure() {
  tries=0
  for other in $others; do set -- "$@" --besides "$folder/$other"; done
  while :; do
    code=0
    "$gpu" measure --resume -o "$folder/$record" "$@" || code=$?
    case $code in
      0 | 5) return 0 ;;
      6) tries=$((tries + 1)); [ $tries -lt 5 ] || exit 6 ;;
      *) exit $code ;;
    esac
  done
}

can_measure() {
  [ "$budget" != 0 ] || return 1
  why=0
  build && "$gpu" info > "$folder/info.new" || why=$?
  if [ $why = 0 ]; then
    mv "$folder/info.new" "$folder/info.txt"
    return 0
  fi
  rm -f "$folder/info.new"
  [ -n "$(records)" ] || exit $why
  say "nothing can be measured here: going on with the records of $folder"
  return 1
}

if can_measure; then
  others=$(records)
  number=1
  while [ -e "$folder/record-$number.json" ]; do number=$((number + 1)); done
  record=record-$number.json
  say "measuring launches and training steps"
  measure --kinds training_step,launch --time-limit 80s
  say "measuring kernels, $budget"
  measure --time-limit "$budget"
fi

orrery=${ORRERY:-}
[ -n "$orrery" ] || for one in "$source"/../build/release/orrery "$source"/../build/*/orrery; do
  [ -x "$one" ] && orrery=$one && break
done
[ -n "$orrery" ] || orrery=$(command -v orrery || true)
if [ -z "$orrery" ]; then
  say "no orrery here: carry $folder to where it is, and run this there again"
  exit 0
fi

say "fitting"
all=$(records)
[ -z "${orrery##/*}" ] || orrery=$(command -v "$orrery")
[ -z "${orrery##/*}" ] || orrery=$PWD/$orrery
cd "$folder"
"$orrery" calibrate fit $all --own-attention --force -o own.json > own.txt
"$orrery" calibrate fit $all --force -o calibration.json > fit.txt
cat fit.txt
"$orrery" calibrate show calibration.json --svg achieved.svg --force > /dev/null
with_steps=$(grep -l '"kind": "training_step"' $all | head -1 || true)
if [ -z "$with_steps" ]; then
  say "no training step was measured"
  exit 0
fi
say "training steps, predicted from the records and from the project's own tables"
"$orrery" calibrate step "$with_steps" --calibration own.json > step.txt
echo >> step.txt
"$orrery" calibrate step "$with_steps" >> step.txt
cat step.txt
