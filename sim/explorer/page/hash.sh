#!/bin/sh
# Prints a hash of the page's sources: their names and what is in them.
set -eu
cd "$(dirname "$0")"
LC_ALL=C sha256sum source/* package.json tsconfig.json | sha256sum | cut -c 1-16
