#!/usr/bin/env bash
# Each header compiles alone: it includes what it uses, and no more floors than it may see (the
# include path of core and store has no PostgreSQL in it). Prints TAP.
set -u
set -o pipefail
cc=${CC:-gcc}
make=${MAKE:-make}
number=0
failed=0

# check FLAGS... HEADER
check() {
  local header=${!#} out
  number=$((number + 1))
  if out=$("$cc" -std=c11 -Wall -Wextra -Werror -fsyntax-only "${@:1:$#-1}" -x c - 2>&1 \
    <<<"${prelude}#include \"$(basename "$header")\""); then
    echo "ok $number - $header compiles alone"
  else
    failed=1
    echo "not ok $number - $header compiles alone"
    sed 's/^/#   /' <<<"$out" | head -n 12
  fi
}

prelude=
for header in src/core/*.h; do [ ! -e "$header" ] || check -Isrc/core "$header"; done
for header in src/store/*.h; do [ ! -e "$header" ] || check -Isrc/core -Isrc/store "$header"; done

# Source files of the shell include postgres.h before anything else.
prelude=$'#include "postgres.h"\n'
flags=$("$make" -s PG_CONFIG="${PG_CONFIG:-pg_config}" CC="$cc" show-pg-flags 2>/dev/null |
  sed "s/-DQLOG_VERSION=[^ ]*//")
if [ -n "$flags" ]; then
  for header in src/pg/*.h; do [ ! -e "$header" ] || check $flags "$header"; done
fi
echo "1..$number"
exit "$failed"
