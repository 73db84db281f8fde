#!/usr/bin/env bash
# Builds a preset (KILN_PRESET, default: release) and runs every test, one line for each as it ends. What needs a device or data that is not here skips and
# says why. The last lines name what failed and what was skipped, then the counts: test programs that passed and failed, cases and programs that were skipped.
#   scripts/test.sh [ARGUMENTS OF CTEST]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${KILN_PRESET:-release}
scripts/build.sh "$preset"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset "$preset" "$@" 2>&1 | tee "$log" || status=$?
scripts/test_summary.sh "$log" "build/$preset/Testing/Temporary/LastTest.log"
exit "$status"
