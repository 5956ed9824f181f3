#!/bin/sh
# Installs what `make test-heavy` needs and pip cannot bring: a Prometheus server with promtool, a Pushgateway, a
# browser, and a TypeScript compiler with Grafana's types. What is there already is left alone, so a second call costs
# nothing. As root on Debian the system's packages are installed; elsewhere the missing ones are named and the call fails,
# because a test that is left out for want of a program looks like a test that passed.
#
#     sh tools/system_programs.sh NODE_DIR      NODE_DIR gets the packages of npm, such as .venv/node
set -eu

node_dir=${1:?system_programs.sh: expected the directory for packages of npm, such as .venv/node}

# Exact, because types are compared with files that are committed: the schema belongs to the Grafana of the compose file.
npm_packages="typescript@5.9.3 @grafana/schema@12.0.0"

has() { command -v "$1" >/dev/null 2>&1; }

# program, then the Debian package that holds it
missing_packages() {
  while read -r program package; do
    has "$program" || echo "$package"
  done <<PROGRAMS | sort -u | tr '\n' ' '
prometheus prometheus
promtool prometheus
prometheus-pushgateway prometheus-pushgateway
chromium chromium
node nodejs
npm npm
PROGRAMS
}

packages=$(missing_packages)
if [ -n "$packages" ]; then
  if ! has apt-get || [ "$(id -u)" -ne 0 ]; then
    echo "system_programs.sh: expected the programs of these Debian packages on PATH: ${packages% }; install them (as root on Debian: apt-get install ${packages% })" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # shellcheck disable=SC2086 # one word for each package
  apt-get install -y -qq --no-install-recommends $packages
fi

wanted="$node_dir/.installed"
if [ "$(cat "$wanted" 2>/dev/null)" != "$npm_packages" ]; then
  mkdir -p "$node_dir"
  # shellcheck disable=SC2086
  npm install --prefix "$node_dir" --no-save --no-package-lock --no-audit --no-fund --loglevel=error $npm_packages
  echo "$npm_packages" >"$wanted"
fi
