#!/bin/sh
# usage: build.sh [OUTPUT_FOLDER]
#
# Makes the explorer's page of source/, into bundle/ or another folder. Needs node and npm, which
# fetches esbuild and typescript as package.json names them, into build/page-tools; who builds
# Orrery needs none of these. The first line of the script holds a hash of the sources, by which a
# test knows whether they fit.
set -eu
cd "$(dirname "$0")"
out=${1:-bundle}
tools=${ORRERY_PAGE_TOOLS:-../../../build/page-tools/node_modules}
if [ ! -x "$tools/.bin/esbuild" ]; then
  mkdir -p "${tools%/node_modules}"
  cp package.json "${tools%/node_modules}"
  npm install --no-audit --no-fund --prefix "${tools%/node_modules}" >&2
fi
"$tools/.bin/tsc" --noEmit -p tsconfig.json
hash=$(./hash.sh)
mkdir -p "$out"
for page in main:explorer report:report; do
  "$tools/.bin/esbuild" "source/${page%:*}.ts" --bundle --minify --target=es2022 --charset=utf8 \
    --legal-comments=none --loader:.html=text \
    --banner:js="/* Orrery's explorer, from sources $hash */" \
    --outfile="$out/${page#*:}.js" --log-level=warning
  "$tools/.bin/esbuild" "source/${page#*:}.css" --bundle --minify --charset=utf8 \
    --outfile="$out/${page#*:}.css" --log-level=warning
done
cp source/explorer.html "$out/explorer.html"
node -e 'const script = require("fs").readFileSync(process.argv[1]);
  process.stdout.write(require("crypto").createHash("sha256").update(script).digest("base64"))' \
  "$out/report.js" > "$out/report.hash"
