#!/usr/bin/env bash
# Builds the release preset and runs every test. What needs a device or data that is not here skips and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release
ctest --preset release "$@"
