#!/bin/sh
# calibration/one_gpu.sh without a GPU: a stand-in for orrery-gpu loses its GPU once, then leaves a
# record; orrery fits it.  usage: one_gpu.sh SOURCE ORRERY
set -eu
source=$1 orrery=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/stand-in" << END
#!/bin/sh
echo "\$@" >> "$folder/calls"
case \$1 in
  info) [ ! -e "$folder/no-gpu" ] || exit 77; echo a GPU; exit 0 ;;
  measure) ;;
  *) exit 2 ;;
esac
if [ ! -e "\$4" ]; then
  cp "$source/tests/golden/synthetic-steps.json" "\$4"
  exit 6
fi
cp "$source/tests/golden/synthetic-record.json" "\$4"
exit 5
END
chmod +x "$folder/stand-in"

# The synthetic GPU is not in the catalog by its driver's name: the fit has to fail, by name, with
# all that was measured kept.
code=0
ORRERY_GPU=$folder/stand-in ORRERY=$orrery "$source/calibration/one_gpu.sh" "$folder/out" 1m \
  2> "$folder/errors" || code=$?
[ $code = 2 ] || { cat "$folder/errors"; echo "exit code $code instead of 2"; exit 1; }
grep -q "synthetic-test-gpu" "$folder/errors"

diff - "$folder/calls" << END
info
measure --resume -o $folder/out/record-1.json --kinds training_step,launch --time-limit 80s
measure --resume -o $folder/out/record-1.json --kinds training_step,launch --time-limit 80s
measure --resume -o $folder/out/record-1.json --time-limit 1m
END

# Another call has a record of its own, and leaves out what the first holds.
ORRERY_GPU=$folder/stand-in ORRERY=$orrery "$source/calibration/one_gpu.sh" "$folder/out" 1m \
  2> "$folder/errors" || true
tail -1 "$folder/calls" > "$folder/last"
echo "measure --resume -o $folder/out/record-2.json --time-limit 1m --besides" \
  "$folder/out/record-1.json" | diff - "$folder/last"
rm "$folder/out/record-2.json"

# Where there is no GPU, what was measured is fitted; a GPU of the catalog goes all the way. (The
# digest is that of the text before it: FNV-1a, as calibration/host/record.cpp has it.)
python3 - "$source/tests/golden" "$folder/out/record-1.json" << 'END'
import json, sys
golden, target = sys.argv[1:]
def read(name): return open(f"{golden}/{name}").read()
text, steps = read("synthetic-record.json"), read("synthetic-steps.json")
begin = '"measurements": ['
rows = steps[steps.index(begin) + len(begin):steps.rindex("\n],\n\"digest\"")]
text = text[:text.rindex(',\n"digest"')]
assert text.endswith("\n]")
text = text[:-2] + "," + rows + "\n]"
for old, new in {'"synthetic-test-gpu"': '"NVIDIA H100 80GB HBM3"',
                 '"multiprocessors": 100': '"multiprocessors": 132'}.items():
    assert old in text, old
    text = text.replace(old, new)
value = 0xcbf29ce484222325
for byte in text.encode():
    value = ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff
open(target, "w").write(text + f',\n"digest": "{value:016x}"}}\n')
END
touch "$folder/no-gpu"
ORRERY_GPU=$folder/stand-in ORRERY=$orrery "$source/calibration/one_gpu.sh" "$folder/out" \
  > "$folder/text" 2> "$folder/errors"
grep -q "nothing can be measured here" "$folder/errors"
[ "$(tail -1 "$folder/calls")" = info ]
for file in calibration.json fit.txt achieved.svg step.txt; do
  [ -s "$folder/out/$file" ] || { echo "no $file"; exit 1; }
done
grep -q "by the tables of h100-sxm" "$folder/out/fit.txt"
[ "$(grep -c "2 layers of 2048, 4096 tokens, eager  " "$folder/out/step.txt")" = 2 ]

# Without records there is nothing to go on with: orrery-gpu's own exit code.
code=0
ORRERY_GPU=$folder/stand-in ORRERY=$orrery "$source/calibration/one_gpu.sh" "$folder/empty" \
  2> "$folder/errors" || code=$?
[ $code = 77 ] || { echo "exit code $code instead of 77"; exit 1; }
