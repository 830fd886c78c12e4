#!/usr/bin/env bash
# test-deb.sh [MIRROR]: installs the packages of build/deb in a fresh Debian 12, uses, upgrades, removes and purges them, and checks that no
# file is left. Programs that hold a lock go on meanwhile. Needs root, and the mirror (or a proxy of it in http_proxy).
# OLD_DEBS=FOLDER: the packages of an earlier release. The upgrade is from these to those of build/deb. Without them the upgrade is from
# build/deb to the same packages with a greater version.
set -euo pipefail
old_debs=${OLD_DEBS:+$(realpath "$OLD_DEBS")}
cd "$(dirname "$0")/.."
debs=$PWD/build/deb
mirror=${1:-http://deb.debian.org/debian}
fail() { echo "test-deb: $*" >&2; exit 1; }
compgen -G "$debs/libholdfast0_*.deb" >/dev/null || fail "there are no packages in build/deb; make deb builds them"
# The names of packages, and the version of those in a folder.
names=(libholdfast0 libholdfast-dev holdfast holdfast-faultproxy python3-holdfast holdfast-store-{etcd,mariadb,postgres,redis,zookeeper})
version_in() { dpkg-deb --field "$(compgen -G "$1/libholdfast0_*.deb" | head -n 1)" Version; }
present=$(version_in "$debs")
if [[ -n $old_debs ]]; then
  compgen -G "$old_debs/libholdfast0_*.deb" >/dev/null || fail "there are no packages in OLD_DEBS=$OLD_DEBS"
  old=$(version_in "$old_debs")
  dpkg --compare-versions "$old" lt "$present" || fail "the packages in OLD_DEBS have the version $old, and those of build/deb $present"
fi
work=$(mktemp --directory --tmpdir holdfast-deb-XXXXXX)
root=$work/root
image=$work/image  # what the container file makes
mkdir "$work/built"
cp "$debs"/*.deb "$work/built/"  # make deb may go on meanwhile
if [[ -n $old_debs ]]; then
  mkdir "$work/old"
  cp "$old_debs"/*.deb "$work/old/"
  rm -f "$work"/old/*-dbgsym_*.deb
fi
mounted=()
clean_up() {
  local started
  for started in "$root"/tmp/*.{shell,pid}; do
    [[ ! -s $started ]] || kill "$(cat "$started")" 2>/dev/null || true
  done
  # --lazy: a signal may have ended this script while a program still uses the folder.
  for at in "${mounted[@]}"; do umount --recursive --lazy "$at" || true; done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
step() { echo "---- $*"; }

step "a fresh Debian 12 from $mirror"
mmdebstrap --quiet --variant=apt bookworm "$root" "$mirror"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[[ ! -e /etc/apt/apt.conf ]] || cp /etc/apt/apt.conf "$root/etc/apt/apt.conf"
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/test-deb"  # nothing of it has to outlive a crash
cp -a "$root" "$image"
for at in {"$root","$image"}/{proc,dev}; do
  mount --rbind --make-rslave "/${at##*/}" "$at"
  mounted=("$at" "${mounted[@]}")
done
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
  ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} "$@"; }
apt() { in_root apt-get -qq -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root -y --no-install-recommends "$@" >"$work/apt.log" 2>&1 ||
  { cat "$work/apt.log"; return 1; }; }
# Lists the files, except those that programs leave behind on purpose: the package manager's own records, and caches.
files() {
  local each prune=()
  for each in /proc /dev /tmp /var/lib/dpkg /var/lib/apt /var/cache /var/log /usr/share/doc /usr/share/man; do
    prune+=(-path "$each" -o)
  done
  in_root find / -xdev \( "${prune[@]}" -false \) -prune -o -print | grep -v -e /__pycache__ -e '^/etc/ld.so.cache$' | sort
}
doc_files() { in_root find /usr/share/doc /usr/share/man -path '*holdfast*' | sort; }
# says EXPECTED STATUS COMMAND...: fails unless the command's output contains the words, and it ends with the status.
says() {
  local words=$1 status=$2 printed ended=0
  shift 2
  printed=$(in_root "$@" 2>&1) || ended=$?
  [[ $ended == "$status" ]] || fail "$* ended with $ended, not $status: $printed"
  [[ $printed == *"$words"* ]] || fail "$* does not say '$words': $printed"
}

store=redis+unix:///tmp/redis.sock
redis() { in_root redis-cli -s /tmp/redis.sock "$@"; }
# starts NAME COMMAND: a program in the background, until it says that it has the lock NAME. The command is a line of the shell. It writes
# to /tmp/NAME.held when it has the lock, and ends when it can read from /tmp/NAME.end.
starts() {
  mkfifo "$root/tmp/$1".{held,end,ended}
  in_root sh -c "echo \$\$ >/tmp/$1.shell; $2 & echo \$! >/tmp/$1.pid; wait \$!; echo \$? >/tmp/$1.ended" >"$work/$1.log" 2>&1 &
  [[ $(timeout 60 cat "$root/tmp/$1.held") == held ]] || fail "nobody holds $1: $(cat "$work/$1.log")"
}
# Its command ends with 7; if the lock is lost, holdfast ends with 79.
holds() { starts "$1" "holdfast run --store $store --ttl 10s $1 -- sh -c 'echo held >/tmp/$1.held; read -r end </tmp/$1.end; exit 7'"; }
# It also takes a second lock after it has heard that it shall end.
holds_in_python() {
  cat >"$root/tmp/$1.py" <<END
import sys, holdfast
with holdfast.open("$store") as store:
    with store.mutex("$1", options=holdfast.LockOptions(lease=10)) as lease:
        with open("/tmp/$1.held", "w") as held:
            print("held", file=held)
        with open("/tmp/$1.end") as end:
            end.readline()
        with store.mutex("$1, a second one") as second:
            assert second.fence
        lease.check()
sys.exit(7)
END
  starts "$1" "python3 /tmp/$1.py"
}
life() { redis --raw eval 'local most = -2
  for _, key in ipairs(redis.call("keys", ARGV[1])) do most = math.max(most, redis.call("pttl", key)) end
  return most' 0 "*{$1}*"; }  # of the lock's record, in milliseconds; it grows only if the lock is renewed
# goes_on NAME...: each of these is renewed from now on.
goes_on() {
  local name earlier now tries
  for name in "$@"; do
    earlier=$(life "$name")
    for ((tries = 0; ; ++tries)); do
      now=$(life "$name")
      [[ $now -gt 0 && $tries -lt 150 ]] || fail "the lock $name is not renewed: $(cat "$work/$name.log")"
      [[ $now -le $earlier ]] || break
      earlier=$now
      sleep 0.2
    done
  done
}
# ends NAME...: each of these ends as its command did, so its lock has not been lost.
ends() {
  local name ended
  for name in "$@"; do
    timeout 60 sh -c "echo end >'$root/tmp/$name.end'" || fail "the program with $name does not wait any more: $(cat "$work/$name.log")"
    ended=$(timeout 60 cat "$root/tmp/$name.ended")
    rm "$root/tmp/$name".{shell,pid}  # others may have these numbers from now on
    [[ $ended == 7 ]] || fail "the program with $name ended with $ended: $(cat "$work/$name.log")"
  done
}

step "the container file: its steps, in a Debian of their own"
# Each of its instructions, on one line.
instructions() { sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' examples/deploy/Containerfile | grep -v -e '^#' -e '^$'; }
container() {
  local root=$image stores="" user="" line
  while read -r -u 3 line; do
    case $line in
      "FROM debian:12-slim") ;;
      'ARG STORES="'*) stores=${line#*\"} stores=${stores%\"} ;;
      "RUN --mount=type=bind,target=/packages "*)
        mkdir "$root/packages"
        cp "$work"/built/*.deb "$root/packages/"
        in_root env STORES="$stores" sh -c "${line#*/packages}" >"$work/image.log" 2>&1 || { cat "$work/image.log"; fail "RUN failed"; }
        rm -r "$root/packages" ;;
      "USER "*) user=${line#USER } ;;
      'ENTRYPOINT ["/usr/bin/holdfast"]')
        says "stores: memory sqlite ${stores% } memcached" 0 setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups \
          /usr/bin/holdfast version ;;
      *) fail "this script cannot carry out what the container file says: $line" ;;
    esac
  done 3< <(instructions)
  [[ -n $user ]] || fail "the container file names no user"
  ! in_root dpkg-query --show libpq5 >/dev/null 2>&1 || fail "the image has the client of a store that it does not name"
}
container

step "what others need is there before, so that what is left over is ours"
apt update
apt install python3-minimal python3 redis-server g++ cmake make pkg-config
files >"$work/before"
in_root dpkg --get-selections | sort >"$work/packages-before"

step "install: the tool alone, without the client of any server"
mkdir "$root/tmp/debs"
cp "$work"/built/*.deb "$root/tmp/debs/"
# The paths of these packages' files, inside the new root.
place() { for name in "$@"; do (cd "$root" && compgen -G "tmp/debs/${name}_*.deb" | sed 's,^,/,'); done; }
# shellcheck disable=SC2046  # names without spaces
apt install $(place libholdfast0 holdfast)
for client in libgrpc++1.51 libpq5 libmariadb3 libzookeeper-mt2; do
  ! in_root dpkg-query --show "$client" >/dev/null 2>&1 || fail "the tool brought $client along"
done
says "stores: memory sqlite memcached" 0 holdfast version
for file in man/man1/holdfast.1.gz man/man1/holdfast-serve.1.gz bash-completion/completions/holdfast \
  zsh/vendor-completions/_holdfast fish/vendor_completions.d/holdfast.fish \
  doc/holdfast/examples/{single.service,nightly.timer,kubernetes.yaml,alerts.yml,dashboard.json}*; do
  in_root sh -c "test -s /usr/share/$file" || fail "the package holdfast lacks /usr/share/$file"
done
for file in $(grep -o '/usr/share/doc/[^ ]*' packaging/debian/changelog); do
  [[ -s $root$file ]] || fail "packaging/debian/changelog names $file, which no package has"
done
[[ -e $root/usr/share/doc/holdfast/README.md ]] || fail "the package holdfast has no README"
python3 -B tests/package/links.py "$root/usr/share/doc/holdfast" || fail "pages of the package holdfast lead nowhere"
says done 0 holdfast run --store sqlite:/tmp/locks.db nightly -- echo done
says "holdfast-store-redis" 78 holdfast run --store redis://127.0.0.1 nightly -- echo done
says "holdfast-store-etcd" 78 holdfast run --store etcd://127.0.0.1/x nightly -- echo done

step "one store's package, which is removed while a program uses its driver"
# shellcheck disable=SC2046
apt install $(place holdfast-store-redis)
says "stores: memory sqlite redis memcached" 0 holdfast version
says "" 0 redis-server --port 0 --unixsocket /tmp/redis.sock --daemonize yes --pidfile /tmp/redis.pid --save ""
holds driver-removed
apt remove --autoremove holdfast-store-redis
says "stores: memory sqlite memcached" 0 holdfast version
says "holdfast-store-redis" 78 holdfast run --store "$store" nightly -- echo done
says done 0 holdfast run --store sqlite:/tmp/locks.db nightly -- echo done
goes_on driver-removed
for type in normal pubsub; do redis client kill type "$type" >/dev/null; done
goes_on driver-removed  # over a new connection
ends driver-removed

step "install: all of it, and a lock over each language"
# shellcheck disable=SC2046
apt install $(place holdfast-store-redis holdfast-store-postgres holdfast-store-mariadb holdfast-store-zookeeper holdfast-store-etcd \
  libholdfast-dev python3-holdfast holdfast-faultproxy)
says "stores: memory sqlite redis postgres mariadb zookeeper etcd memcached" 0 holdfast version
says done 0 holdfast run --store "$store" nightly -- echo done
says "Connection refused" 69 holdfast run -w 0s --store postgres://127.0.0.1:1/x nightly -- echo done
says "Can't connect to server on '127.0.0.1'" 69 holdfast run -w 0s --store mariadb://127.0.0.1:1/x nightly -- echo done
says "no server accepted the session" 69 holdfast run -w 0s --store zookeeper://127.0.0.1:1/x nightly -- echo done
says "Connection refused" 69 holdfast run -w 0s --store etcd://127.0.0.1:1/x nightly -- echo done
cp examples/first_program.cpp examples/first_program.c examples/first_program.py "$root/tmp/"
cp -r tests/package/consumer "$root/tmp/consumer"
# One command a line: `sh -e` does not end when a command before "&&" fails.
says "" 0 sh -ec 'cd /tmp
  g++ -std=c++20 first_program.cpp -o first_cpp $(pkg-config --cflags --libs holdfast)
  ./first_cpp
  ldd first_cpp | grep libholdfast.so.0.1
  [ "$(pkg-config --static --libs holdfast)" = "$(pkg-config --libs holdfast)" ]
  gcc first_program.c -o first_c $(pkg-config --cflags --libs holdfast-c)
  ./first_c
  python3 first_program.py
  holdfast-faultproxy --version'
says "" 0 sh -ec 'mkdir /tmp/shared
  cd /tmp/shared
  cmake -DHOW=find_shared /tmp/consumer
  make
  ./consumer'
says 7 0 python3 -c "import holdfast
with holdfast.open('$store').mutex('order') as lease:
    print(7 if lease.fence else 'no fence')"
says 0. 0 python3 -c "import importlib.metadata
print(importlib.metadata.version('holdfast'))"

# Packages that users build depend on a name that holdfast 0.2, which has another soname, does not provide.
says "libholdfast 0.1 libholdfast-0.1 (>= " 0 sh -c 'cat /var/lib/dpkg/info/libholdfast0*.shlibs'
says "libholdfast-0.1 (= " 0 dpkg-query --show --showformat '${Provides}' libholdfast0

if [[ -n $old_debs ]]; then
  step "upgrade from $old to $present, with locks in use"
  apt purge "${names[@]}"  # because apt does not install an older version over a newer one
  mkdir "$root/tmp/old"
  cp "$work"/old/*.deb "$root/tmp/old/"
  # shellcheck disable=SC2046
  apt install $(cd "$root" && compgen -G 'tmp/old/*.deb' | sed 's,^,/,')
  says "$old" 0 dpkg-query --show holdfast
  next=$present
else
  next=$present+next
  step "upgrade from $present to $next, with locks in use"
  for deb in "$work"/built/*.deb; do
    [[ $deb != *-dbgsym* ]] || continue
    dpkg-deb --raw-extract "$deb" "$work/tree"
    sed -i -e "s/^Version: .*/Version: $next/" -e "s/(= $present)/(= $next)/g" "$work/tree/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/tree" "$root/tmp/debs/$(basename "${deb/_$present/_$next}")" >/dev/null
    rm -rf "$work/tree"
    rm "$root/tmp/debs/$(basename "$deb")"
  done
fi
holds upgraded
holds_in_python upgraded-in-python
# shellcheck disable=SC2046
apt install $(cd "$root" && compgen -G 'tmp/debs/*.deb' | grep -v dbgsym | sed 's,^,/,')
for name in "${names[@]}"; do says "$next" 0 dpkg-query --show --showformat '${Version}' "$name"; done
says done 0 holdfast run --store "$store" nightly -- echo done
for held in upgraded upgraded-in-python; do says "" 75 holdfast run -n --store "$store" "$held" -- echo done; done
goes_on upgraded upgraded-in-python
ends upgraded upgraded-in-python

step "remove, with locks in use: only configuration files stay"
holds removed
holds_in_python removed-in-python
in_root dpkg-query --showformat '${Conffiles}\n' --show "${names[@]}" | awk 'NF {print $1}' >"$work/configuration"
in_root dpkg-query --listfiles "${names[@]}" | sort --unique | grep -vxF -f "$work/configuration" >"$work/theirs"
while read -r file; do echo "# by the administrator" >>"$root$file"; done <"$work/configuration"
apt remove "${names[@]}"
says "No such file" 127 holdfast version
while read -r file; do
  [[ $(tail -n 1 "$root$file") == "# by the administrator" ]] || fail "apt remove took or changed the configuration file $file"
done <"$work/configuration"
while read -r file; do
  [[ ! -L $root$file && (! -e $root$file || -d $root$file) ]] || fail "apt remove leaves $file"
done <"$work/theirs"
goes_on removed removed-in-python
ends removed removed-in-python
in_root sh -c 'kill "$(cat /tmp/redis.pid)"'

step "purge: nothing is left"
in_root dpkg --purge "${names[@]}" >"$work/purge.log" 2>&1 || { cat "$work/purge.log"; fail "dpkg --purge failed"; }
apt autoremove --purge
files >"$work/after"
in_root dpkg --get-selections | sort >"$work/packages-after"
diff "$work/packages-before" "$work/packages-after" || fail "packages differ from those before"
diff "$work/before" "$work/after" || fail "files differ from those before"
left=$(doc_files)
[[ -z $left ]] || fail "left over: $left"
[[ -s $root/tmp/locks.db ]] || fail "the locks in /tmp/locks.db are gone, which belong to the user"
echo "test-deb: installed, used, upgraded, removed and purged, with locks in use; nothing is left"
