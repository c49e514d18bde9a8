#!/bin/sh
# Installs the Debian package with apt into a fresh Debian below a folder, which has no compiler,
# and uses it there. Takes minutes and a network: only where ORRERY_CLEAN_ROOT=1 asks for it.
# 77: not asked for, or no root or debootstrap.
# usage: clean_root_test.sh BUILD SOURCE
set -eu
build=$1
source=$2
skip() {
  echo "skipped: $*"
  exit 77
}
[ "${ORRERY_CLEAN_ROOT-}" = 1 ] || skip "ORRERY_CLEAN_ROOT=1 tries the package in a fresh Debian"
[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
for tool in debootstrap dpkg-shlibdeps cpack unshare; do
  command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=${ORRERY_MIRROR-}  # Else debootstrap's own.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$folder/pack" >"$folder/log" 2>&1 || {
  cat "$folder/log"
  exit 1
}
package=$(ls "$folder"/pack/*.deb)
debootstrap --variant=minbase "$release" "$root" ${mirror:+"$mirror"} >"$folder/log" 2>&1 || {
  tail -3 "$folder/log"
  skip "debootstrap reaches no mirror (ORRERY_MIRROR names one)"
}
# Proxies and what it trusts are the machine's matter.
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp "$package" "$root/tmp/"
cp "$source/tests/package/smoke.sh" "$root/tmp/"
# /proc is mounted for this one command, and goes with it.
in_root() {
  unshare --mount sh -ec 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
install() {
  in_root apt-get -qq install -y --no-install-recommends "$@" >"$folder/log" 2>&1 || {
    cat "$folder/log"
    exit 1
  }
}
size() { du -sm --exclude=./var "$root" | cut -f1; }

before=$(size)
in_root apt-get -qq update
begin=$(date +%s)
install "/tmp/${package##*/}"
seconds=$(($(date +%s) - begin))
for compiler in cc gcc g++ clang cmake; do
  if in_root sh -c "command -v $compiler"; then
    echo "the root has $compiler: it shows nothing"
    exit 1
  fi
done
in_root sh /tmp/smoke.sh /usr
echo "package $(du -k "$package" | cut -f1) kB; with all that it depends on installed in" \
  "$seconds s, $(($(size) - before)) MB"
# With Python, which is recommended: the module is compiled at installation and cleaned at removal.
install python3
install --reinstall "/tmp/${package##*/}"
in_root sh /tmp/smoke.sh /usr
in_root sh -c 'ls /usr/lib/python3/dist-packages/orrery/__pycache__/*.pyc' >/dev/null
in_root apt-get -qq purge -y orrery >"$folder/log" 2>&1
left=$(find "$root/usr" -path '*orrery*' || true)
[ -z "$left" ] || {
  echo "left behind: $left"
  exit 1
}
echo "removed without a trace"
