#!/usr/bin/env bash
# Sets up, configures and builds one preset (default: release). Usage: scripts/build.sh [PRESET] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
scripts/setup.sh
# Cached objects serve any checkout of the same sources, wherever it lies.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_INODECACHE=1
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >"/tmp/kiln-configure-$$.log" 2>&1 || { cat "/tmp/kiln-configure-$$.log"; exit 1; }
rm -f "/tmp/kiln-configure-$$.log"
cmake --build "build/$preset" ${*:+--target "$@"}
