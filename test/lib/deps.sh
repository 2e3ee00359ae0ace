#!/usr/bin/env bash
# Installs the Debian packages that qlog needs to build and to be tested.
#
# Silent and quick when nothing is missing: one dpkg-query, no network, no privilege. Otherwise
# apt-get runs, as root directly and else through sudo. The PostgreSQL package would create and
# start a cluster "main" when it is first installed, and the PgBouncer package its daemon; the one is
# switched off for the time of the installation, the other after it, so that a test run leaves no
# server behind.
set -eu

packages=(
  postgresql-15 postgresql-server-dev-15
  liblmdb-dev libzstd-dev libxxhash-dev libkrb5-dev
  gcc libc6-dev libc6-dbg make clang libclang-rt-14-dev binutils
  perl libipc-run-perl python3
  spin pg-bsd-indent valgrind pgbouncer
  procps util-linux
)

say() { printf 'deps: %s\n' "$*" >&2; }

# Prints those of the wanted packages that are not installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p')
  printf '%s\n' "${packages[@]}" | grep -vxF -f <(printf '%s\n' "$installed") || true
}

apt() {
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" \
    >>"$log" 2>&1 </dev/null
}

fail() {
  say "$1; the last lines of apt-get:"
  tail -n 20 "$log" >&2
  exit 1
}

restore_cluster_default() {
  if [ -n "${saved:-}" ]; then
    $sudo cp -p "$saved" "$cluster_conf"
    $sudo rm -f "$saved"
    saved=
  fi
  rm -f "$log"
}

if ! command -v dpkg-query >/dev/null; then
  for tool in gcc make perl pg_config; do
    command -v "$tool" >/dev/null || { say "not a Debian system, and $tool is missing"; exit 1; }
  done
  exit 0
fi

missing=$(missing_packages)
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    { say "needs root or sudo to install:" $missing; exit 1; }
  sudo=sudo
fi

log=$(mktemp)
saved=
cluster_conf=/etc/postgresql-common/createcluster.conf
trap restore_cluster_default EXIT

say "installing" $missing
apt update || fail "apt-get update failed"
case " $(echo $missing) " in
  *" postgresql-15 "*)
    apt install --no-install-recommends postgresql-common || fail "cannot install postgresql-common"
    saved=$($sudo mktemp)
    $sudo cp -p "$cluster_conf" "$saved"
    echo 'create_main_cluster = false' | $sudo tee -a "$cluster_conf" >/dev/null
    ;;
esac
apt install --no-install-recommends $missing || fail "installation failed"

case " $(echo $missing) " in
  *" pgbouncer "*)
    $sudo systemctl disable --now pgbouncer >/dev/null 2>&1 ||
      $sudo service pgbouncer stop >/dev/null 2>&1 || true
    ;;
esac

missing=$(missing_packages)
[ -z "$missing" ] || { say "still missing:" $missing; exit 1; }
say "done"
