#!/bin/sh
# Builds the Debian package, installs it with dpkg below a folder, uses it there and removes it.
# 77: a tool of Debian is not here.
# usage: package_test.sh BUILD SOURCE
set -eu
build=$1
source=$2
for tool in dpkg:dpkg dpkg-deb:dpkg dpkg-shlibdeps:dpkg-dev cpack:cmake; do
  command -v "${tool%%:*}" >/dev/null 2>&1 || {
    echo "skipped: ${tool%%:*} is not installed (apt-get install ${tool#*:})"
    exit 77
  }
done
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v fakeroot >/dev/null 2>&1 || {
    echo "skipped: dpkg needs root or fakeroot (apt-get install fakeroot)"
    exit 77
  }
  as_root=fakeroot
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

stop() {
  echo "package_test.sh: $*" >&2
  exit 1
}

# Packed for a test that is thrown away: quickly.
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/pack" \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$folder/log" 2>&1 || {
  cat "$folder/log"
  stop "cpack failed"
}
package=$(ls "$folder"/pack/*.deb)
for field in Depends Description Maintainer Section Version; do
  [ -n "$(dpkg-deb -f "$package" $field)" ] || stop "the package has no $field"
done
dpkg-deb -f "$package" Depends | grep -q libsimgrid || stop "Depends lacks libsimgrid"
if dpkg-deb -c "$package" | grep bin/orrery-gpu; then stop "CUDA is none of Debian's"; fi
if dpkg-deb -c "$package" | grep -vE ' \./(usr/.*)?$' | grep .; then stop "files outside /usr"; fi
if dpkg-deb -c "$package" | grep -E '\.pyc|__pycache__|\.orig$'; then stop "files of a build"; fi

root=$folder/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
: >"$root/var/lib/dpkg/status"
dpkg_there() {
  # What it depends on is this machine's.
  $as_root dpkg --root="$root" --force-depends --force-script-chrootless "$@" \
    >"$folder/log" 2>&1 || {
    cat "$folder/log"
    stop "dpkg $* failed"
  }
}
dpkg_there -i "$package"
sh "$source/tests/package/smoke.sh" "$root/usr"

# The data are those of the installed tree, wherever it is, not of the one that it was built from.
mv "$root/usr" "$folder/moved"
sed 's/"llama3-8b"/"only-here"/' "$folder/moved/share/orrery/workloads/models/llama3-8b.json" \
  >"$folder/moved/share/orrery/workloads/models/only-here.json"
"$folder/moved/bin/orrery" list models | grep -q '^only-here ' ||
  stop "a moved tree does not find its data"
rm "$folder/moved/share/orrery/workloads/models/only-here.json"
mv "$folder/moved" "$root/usr"

dpkg_there -r orrery
left=$(find "$root/usr" -type f 2>/dev/null || true)
[ -z "$left" ] || stop "left behind: $left"
echo "$(dpkg-deb -f "$package" Package Version Installed-Size | tr '\n' ' ')"
