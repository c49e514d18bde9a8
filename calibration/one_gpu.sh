#!/bin/sh
# All that one GPU can tell, in one command; what is done already is passed over.
#
#   calibration/one_gpu.sh FOLDER [BUDGET]      BUDGET of the measuring, default 8m
#
# builds orrery-gpu in FOLDER/build (CMake, a C++20 compiler, CUDA), and leaves in FOLDER
#   info.txt          the GPU, driver, libraries
#   record.json       kernels, launches, transfers, training steps
#   fit.txt, calibration.json, achieved.svg     what comes of it, and how far the project's own
#                     tables of this GPU are from it
#   step.txt          the training steps predicted from the record, and from the project's tables
# The last two need orrery (from $ORRERY, build/*/ or the PATH). From a machine without it, carry
# FOLDER to one that has it and run this again there: what was measured is not measured again.
#
# ORRERY_GPU names an orrery-gpu that is built already. Exit code: 0, or that of what went wrong; 77
# without a usable GPU.
set -eu

folder=${1:?usage: calibration/one_gpu.sh FOLDER [BUDGET]}
budget=${2:-8m}
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
record=$folder/record.json

say() { echo "== $*" >&2; }

build() {
  if [ -n "${ORRERY_GPU:-}" ]; then
    gpu=$ORRERY_GPU
    return
  fi
  gpu=$folder/build/orrery-gpu
  [ -x "$gpu" ] && return
  say "building orrery-gpu"
  cmake -S "$source" -B "$folder/build" -DORRERY_CUDA=ON > "$folder/build.log"
  cmake --build "$folder/build" -j "$(nproc)" >> "$folder/build.log" 2>&1 ||
    { tail -20 "$folder/build.log" >&2; exit 1; }
}

# Goes on behind a case after which the GPU no longer answers (exit code 6), five times at most.
# Failed cases (5) are in the record and in the fit's notes.
measure() {
  tries=0
  while :; do
    code=0
    "$gpu" measure --resume -o "$record" "$@" || code=$?
    case $code in
      0 | 5) return 0 ;;
      6) tries=$((tries + 1)); [ $tries -lt 5 ] || exit 6 ;;
      *) exit $code ;;
    esac
  done
}

if [ ! -e "$folder/measured" ]; then
  build
  "$gpu" info > "$folder/info.txt"
  say "measuring training steps and launches"
  measure --kinds training_step,launch --budget 2m
  say "measuring kernels, $budget"
  measure --budget "$budget"
  touch "$folder/measured"
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
"$orrery" calibrate fit "$record" --own-attention -o "$folder/own.json" > "$folder/own.txt"
"$orrery" calibrate fit "$record" -o "$folder/calibration.json" > "$folder/fit.txt"
cat "$folder/fit.txt"
"$orrery" calibrate show "$folder/calibration.json" --svg "$folder/achieved.svg" > /dev/null
say "training steps, predicted from the record and from the project's own tables"
"$orrery" calibrate step "$record" --calibration "$folder/own.json" > "$folder/step.txt"
echo >> "$folder/step.txt"
"$orrery" calibrate step "$record" >> "$folder/step.txt"
cat "$folder/step.txt"
