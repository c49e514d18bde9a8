#!/bin/sh
# usage: page_is_fresh.sh SOURCE_FOLDER
#
# Shows that sim/explorer/page/bundle is what the sources beside it give: by the hash that build.sh
# wrote into it, and where its tools are there (build.sh fetches them; or ORRERY_PAGE_TOOLS says
# where they are) by making it again.
set -eu
cd "$1/sim/explorer/page"
hash=$(./hash.sh)
head -n 1 bundle/explorer.js | grep -qF "from sources $hash */" || {
  echo "sim/explorer/page/source was changed without its bundle: run sim/explorer/page/build.sh"
  exit 1
}
cmp source/explorer.html bundle/explorer.html
[ -x "${ORRERY_PAGE_TOOLS:-../../../build/page-tools/node_modules}/.bin/esbuild" ] || {
  echo "The hash fits. Not made again: esbuild is not installed"
  exit 0
}
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
./build.sh "$again"
for file in explorer.html explorer.js explorer.css report.js report.css report.hash; do
  cmp "bundle/$file" "$again/$file"
done
echo "Made again, to the last byte"
