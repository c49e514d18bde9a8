#!/bin/sh
# What a user does first with an installed Orrery, and what must be there. Run with the same words
# in a clean root and over an unpacked package. Prints a line a check.
# usage: smoke.sh PREFIX          the folder that has bin and share, as /usr
set -eu
prefix=$1
unset ORRERY_DATA ORRERY_PROGRAM PYTHONPATH 2>/dev/null || true
orrery=$prefix/bin/orrery
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

stop() {
  echo "smoke.sh: $*" >&2
  exit 1
}

# has FILE: it is there and not empty.
has() { [ -s "$1" ] || stop "$1 is missing or empty"; }

"$orrery" --version | grep -q '^orrery [0-9]' || stop "no version"
[ "$("$orrery" list models | wc -l)" -ge 50 ] || stop "the catalog has few models"
[ "$("$orrery" list systems | wc -l)" -ge 20 ] || stop "the catalog has few systems"
echo "the catalog is found"

"$orrery" estimate --model llama3-8b --system dgx-h100 --gpus 16 --tp 2 --gbs 32 --verbose >estimate
grep -q '^Step time ' estimate || stop "no step time"
# Measurements came along: without them all would be default.
grep -q '^Times from .*measured' estimate || stop "no measured times"
"$orrery" search --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --top 2 --json >search.json
grep -q '"schema": "orrery.search/1"' search.json || stop "no search"
"$orrery" serve --model llama3-8b --system dgx-h100 --gpus 1 --engine vllm --step 8x1024 >/dev/null
"$orrery" sweep run --model llama3-8b --system dgx-h100 --gpus 8 --gbs 8,16 -o sweep >/dev/null
"$orrery" sweep merge sweep -o rows.sqlite >/dev/null
has rows.sqlite
code=0
"$orrery" estimate --model no-such --system dgx-h100 --gpus 8 --gbs 8 2>error || code=$?
[ "$code" -eq 2 ] && grep -q "'no-such' is not in the catalog" error || stop "no clear error"
echo "questions are answered"

has "$prefix/share/man/man1/orrery.1.gz"
"$orrery" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' | while read -r command; do
  has "$prefix/share/man/man1/orrery-$command.1.gz"
done
has "$prefix/share/bash-completion/completions/orrery"
has "$prefix/share/fish/vendor_completions.d/orrery.fish"
has "$prefix/share/zsh/vendor-completions/_orrery"
has "$prefix/share/doc/orrery/copyright"
has "$prefix/share/doc/orrery/changelog.gz"
has "$prefix/share/doc/orrery/docs/guides/install.md"
echo "pages and completion are there"

if command -v python3 >/dev/null 2>&1; then
  PATH=$prefix/bin:$PATH PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=$([ "$prefix" = /usr ] || echo "$prefix/lib/python3/dist-packages") \
    python3 -c 'import orrery
answer = orrery.estimate(model="llama3-8b", system="dgx-h100", gpus=16, gbs=32, tp=2)
assert answer["step_time_s"] > 0
print("the Python module runs", orrery.__file__)'
else
  has "$prefix/lib/python3/dist-packages/orrery/__init__.py"
  echo "no python3: the module was not tried"
fi
