#!/usr/bin/env bash
# install-deps.sh demo|package|test|nightly|browser|bench|bench-languages|lint|deb|docs|docs-check|make: installs the Debian packages that
# one of the Makefile's commands needs. If the command runs Node, also installs packages of npm in build/npm. If all of them are there, the
# script does nothing, and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

library=(g++ cmake pkg-config libsqlite3-dev libssl-dev libpq-dev libmariadb-dev libzookeeper-mt-dev libgrpc++-dev
         libprotobuf-dev protobuf-compiler)
programs=(libcli11-dev nlohmann-json3-dev libfmt-dev libboost-dev scdoc)  # scdoc: man pages
case "${1:-}" in
  make)  packages=(make) ;;
  demo)  packages=("${library[@]}" "${programs[@]}" python3-minimal) ;;  # for cmake/unity_groups.py
  package) packages=("${library[@]}" "${programs[@]}" python3) ;;
  bench) packages=("${library[@]}" "${programs[@]}" python3 redis-server libhiredis-dev zookeeper python3-kazoo etcd-server
                   etcd-client libcurator-recipes-java ecj memcached postgresql-15 mariadb-server) ;;
  bench-languages)
         packages=("${library[@]}" "${programs[@]}" python3 redis-server zookeeper python3-kazoo python3-redis) ;;
  test|nightly)
         packages=("${library[@]}" "${programs[@]}" make libgtest-dev python3 ninja-build ccache clang-19 libclang-rt-19-dev
                   llvm-19 sqlite3 redis-server libhiredis-dev liblua5.1-0-dev libasio-dev openssl spin zookeeper python3-kazoo
                   postgresql-15 pgbouncer mariadb-server etcd-server etcd-client memcached python3-redis mypy libspdlog-dev tmux zsh fish
                   groff-base python3-yaml systemd)
         if [[ $1 == nightly ]]; then packages+=(prometheus prometheus-cpp-dev chromium fonts-dejavu-core); fi ;;
  browser) packages=(python3 chromium fonts-dejavu-core redis-server) ;;  # 100 MB
  lint)  packages=("${library[@]}" "${programs[@]}" libgtest-dev libhiredis-dev liblua5.1-0-dev libasio-dev python3 ninja-build
                   clang-format-19 clang-tidy-19 mypy spin libspdlog-dev) ;;
  deb)   packages=("${library[@]}" "${programs[@]}" build-essential debhelper dh-python python3 python3-yaml lintian mmdebstrap rsync
                   git systemd) ;;
  docs)  packages=(python3 doxygen mkdocs mkdocs-material) ;;
  docs-check) packages=(python3 doxygen mkdocs mkdocs-material chromium fonts-dejavu-core) ;;
  *)     echo "usage: $0 demo|package|test|nightly|browser|bench|bench-languages|lint|deb|docs|docs-check|make" >&2; exit 2 ;;
esac

# Other lock programs, with which the tests share locks. The distribution of Node's own project contains npm, and conflicts with Debian's
# npm.
peers=tests/interop
installed=build/npm
with_peers=false
[[ $1 != test && $1 != nightly && $1 != bench-languages ]] || with_peers=true
if $with_peers && ! command -v npm >/dev/null; then packages+=(nodejs npm); fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == *installed* && $status != *not-installed* ]] || missing+=("$package")
done

give_up() {
  echo "make ${1}: these packages are needed and could not be installed: ${missing[*]}" >&2
  echo "  $2" >&2
  echo "  On Debian 12: sudo apt-get install ${missing[*]}" >&2
  exit 1
}

install_packages() {
  command -v apt-get >/dev/null || give_up "$1" \
    "There is no apt-get here. Install the same libraries with your own package manager, then: cmake --preset release"
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || \
      give_up "$1" "You are not root and there is no sudo. Run this as root, or ask somebody who can."
    as_root=(sudo)
  fi

  echo "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # The options are on the command line, because sudo drops the environment.
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120)
  "${apt[@]}" update || give_up "$1" "apt-get update failed: is the network there, and are the entries in /etc/apt right?"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" || give_up "$1" "apt-get install failed; its message is above."
}

install_peers() {
  cmp --silent "$peers/package-lock.json" "$installed/node_modules/.from" && return
  mkdir -p "$installed"
  cp "$peers/package.json" "$peers/package-lock.json" "$installed"
  # Tries for half a minute. With its default settings, npm would be silent for ten minutes without a network.
  npm ci --prefix "$installed" --ignore-scripts --no-audit --no-fund --fetch-retries=5 --fetch-retry-factor=2 \
    --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=10000 || {
    echo "make $1: npm could not install what $peers/package-lock.json names; its message is above. Is the network there?" >&2
    exit 1
  }
  cp "$peers/package-lock.json" "$installed/node_modules/.from"
}

((${#missing[@]} == 0)) || install_packages "$1"
! $with_peers || install_peers "$1"
