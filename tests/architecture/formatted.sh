#!/bin/sh
# usage: formatted.sh SOURCE_FOLDER
#
# Holds every source against .clang-format. Other versions than 14 lay out otherwise. 77: it is not
# installed (apt-get install clang-format-14).
command -v clang-format-14 >/dev/null 2>&1 || exit 77
cd "$1" || exit 1
find sim tests calibration \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) \
  -exec clang-format-14 --dry-run --Werror {} + || {
  echo "Lay them out with: clang-format-14 -i FILE"
  exit 1
}
