# Sourced by ./vortex and ./test with $root set: install what is missing, configure, build. Progress goes to stderr.

missing_packages() { # groups…: prints the packages of these groups that are not installed
  local wanted group
  for group in "$@"; do wanted+=" $(sed -n "s/^$group: //p" "$root/tools/dev/packages.txt")"; done
  # shellcheck disable=SC2086
  comm -23 <(printf '%s\n' $wanted | sort) \
    <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u)
}

install_packages() { # groups…
  local missing
  if ! command -v dpkg-query >/dev/null; then
    echo "vortex: this is not Debian or Ubuntu; install the counterparts of these yourself:" >&2
    cat "$root/tools/dev/packages.txt" >&2
    return 1
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  local sudo=
  if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then sudo=sudo; else
      printf 'vortex: packages are missing. Run this, then try again:\n  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n' "$missing" >&2
      return 1
    fi
  fi
  echo "vortex: installing $missing" >&2
  # shellcheck disable=SC2086
  { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >&2 || {
    echo "vortex: installing the packages failed; on Ubuntu enable the universe component" >&2
    return 1
  }
}

prepare_venv() { # .venv with tools/dev/requirements.txt, remade when that file changes
  local list=$root/tools/dev/requirements.txt
  cmp -s "$list" "$root/.venv/requirements.txt" && return 0
  echo "vortex: creating .venv" >&2
  python3 -m venv "$root/.venv" && "$root/.venv/bin/pip" install -q --disable-pip-version-check -r "$list" >&2 &&
    cp "$list" "$root/.venv/requirements.txt"
}

build_targets() { # targets…: quiet when it succeeds, the errors when it fails
  local folder=$root/build log=$root/build/last-build.log
  mkdir -p "$folder"
  if [ ! -e "$folder/build.ninja" ]; then
    "$root/tools/dev/configure" build >"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "vortex: configuring failed, see $log" >&2; return 1; }
  fi
  if [ -t 2 ]; then
    NINJA_STATUS='building vortex [%f/%t] ' ninja -C "$folder" "$@" >&2
  else
    ninja -C "$folder" "$@" >"$log" 2>&1 || { grep -v '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 60 >&2; false; }
  fi || { echo "vortex: the build failed" >&2; return 1; }
}

build_python() { # interpreter: the binding for it, beside those for others; nothing to do while the sources are older
  local cache=$root/build/CMakeCache.txt stamp=$root/build/python.stamp
  [ "$(cat "$stamp" 2>/dev/null)" != "$1" ] ||
    [ -n "$(find "$root"/{CMakeLists.txt,cmake,include,src} -newer "$stamp" -print -quit 2>/dev/null)" ] || return 0
  echo "$1" >"$stamp.new" # before the build: what changes during it is out of date again
  if [ ! -e "$root/build/build.ninja" ] || ! grep -qxF "VORTEX_PYTHON:FILEPATH=$1" "$cache"; then
    "$root/tools/dev/configure" build -DVORTEX_PYTHON="$1" >"$root/build/last-build.log" 2>&1 ||
      { tail -n 30 "$root/build/last-build.log" >&2; return 1; }
  fi
  build_targets vortex_python && mv "$stamp.new" "$stamp"
}
