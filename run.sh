#!/bin/sh
# Sets Orrery up on Debian or Ubuntu: installs what is missing, builds, runs an example.
#
#   ./run.sh        packages, release build, one estimate
#   ./run.sh test   the same, then every test
#
# Messages go to stderr, results to stdout. Safe to repeat: with nothing to do it takes seconds.
set -eu

packages="g++ cmake ninja-build pkg-config libsimgrid-dev libboost-graph-dev \
libboost-program-options-dev nlohmann-json3-dev libsqlite3-dev libyaml-dev \
libtomlplusplus-dev libcpp-httplib-dev zlib1g-dev libgtest-dev libgmock-dev"
test_packages="clang-format-14 python3 dpkg-dev"

say() { printf '%s\n' "$*" >&2; }

stop() {
  say "run.sh: $*"
  exit 2
}

missing_packages() {
  for package in $packages; do
    # A removed package that left its configuration behind also makes dpkg -s succeed.
    dpkg -s "$package" 2>/dev/null | grep -q '^Status: install ok installed' ||
      printf '%s ' "$package"
  done
}

apt_get() {
  set -- env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
  [ "$(id -u)" -eq 0 ] || set -- sudo "$@"
  "$@" >&2
}

install_packages() {
  if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg >/dev/null 2>&1; then
    say "run.sh: this system has no apt-get. Install what these Debian packages hold:"
    say "  $packages"
    stop "then build with: cmake --preset release && cmake --build --preset release"
  fi
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
    stop "installing needs root, and sudo is not there; as root run: apt-get install $missing"
  fi
  say "Installing: $missing"
  apt_get update || stop "apt-get update failed; its message is above"
  # shellcheck disable=SC2086  # A list of words.
  apt_get install -y --no-install-recommends $missing ||
    stop "apt-get could not install $missing; its message is above"
}

configure() {
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  dpkg --compare-versions "$version" ge 3.25 ||
    stop "CMake $version is too old for the presets; 3.25 is needed (Debian 12 has it)"
  cache=build/release/CMakeCache.txt
  # A build folder that came along with a copied or moved checkout names another source folder.
  if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
    say "build/release was configured for another folder: configuring anew"
    cmake --fresh --preset release >&2
  else
    cmake --preset release >&2
  fi
}

example() {
  say ""
  say "Llama 3.1 405B on 1,152 H100s, for which NVIDIA published 17.52 s a step, estimated:"
  build/release/orrery estimate --model llama3.1-405b --system dgx-h100 --gpus 1152 \
    --tp 8 --pp 9 --vpp 7 --cp 2 --gbs 504 --measured 17.52s
}

# What tests need beyond building, and is not installed unasked: other shells, daemons of a cluster,
# a browser.
say_what_was_skipped() {
  for needed in zsh:zsh fish:fish groff:groff-base; do
    command -v "${needed%%:*}" >/dev/null 2>&1 ||
      say "Completion and pages were not tested in full: apt-get install ${needed#*:}, to test them"
  done
  for needed in slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge parallel:parallel
  do
    PATH=$PATH:/usr/sbin command -v "${needed%%:*}" >/dev/null 2>&1 ||
      say "Sweeps on a cluster were not tested in full: apt-get install ${needed#*:}, to test them"
  done
  command -v chromium >/dev/null 2>&1 ||
    say "The explorer's page was not tested in a browser: apt-get install chromium, to test it"
}

next_commands() {
  say ""
  say "Try next${1:+ (from $1)}:"
  say "  build/release/orrery search --model llama3-8b --system dgx-h100 --gpus 64 --gbs 256"
  say "  build/release/orrery explore      # turn a plan's knobs in a browser"
  say "  build/release/orrery help"
}

case "$#:${1-}" in
  0: | 1:test) ;;
  *)
    say "usage: ./run.sh [test]"
    exit 2
    ;;
esac

started_in=$(pwd -P)
cd -P "$(dirname "$0")"

if [ "${1-}" = test ]; then packages="$packages $test_packages"; fi
install_packages
configure
cmake --build --preset release --target orrery >&2
example
if [ "${1-}" = test ]; then
  cmake --build --preset release >&2
  ctest --preset release
  say_what_was_skipped
fi
if [ "$started_in" = "$PWD" ]; then next_commands ""; else next_commands "$PWD"; fi
