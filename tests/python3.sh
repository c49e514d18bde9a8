#!/bin/sh
# Runs a script with Debian's Python; a pyenv's may come first in the path. 77: there is none.
for python in /usr/bin/python3 python3; do
  command -v "$python" >/dev/null 2>&1 && exec "$python" "$@"
done
echo "skipped: python3 is not installed (apt-get install python3)"
exit 77
