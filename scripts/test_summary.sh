#!/usr/bin/env bash
# The end of scripts/test.sh: what failed, what was skipped and why, and the counts.
#   scripts/test_summary.sh PRINTED_BY_CTEST LAST_TEST_LOG
set -euo pipefail
printed=$1 details=$2
result='^ *[0-9]+/[0-9]+ Test +#[0-9]+: '
passed=$(grep -cE "$result.* Passed " "$printed" || true)
skipped=$(grep -cE "$result.*\*\*\*Skipped" "$printed" || true)
failed=$(grep -E "$result.*\*\*\*" "$printed" | grep -cvF '***Skipped' || true)
grep -E "$result.*\*\*\*" "$printed" | sed -E "s,$result,  ,; s, ?\.*\*\*\*,: ," || true
# Cases that GoogleTest and unittest skip inside of programs that pass. GoogleTest prints the reason in the lines before the case's last one.
inside=0
if [ -r "$details" ]; then
  # Why whole programs were skipped; they are counted above.
  awk '/^[0-9]+\/[0-9]+ Testing: / { name = $3 } /^skipped: / { print "  " name ": " $0 }' "$details"
  cases=$(awk '
    /: Skipped$/ { reason = ""; waiting = 1; next }
    waiting && reason == "" && !/^\[/ { reason = $0; next }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { sub(/^\[  SKIPPED \] /, ""); sub(/ \([0-9]+ ms\)$/, ""); print "  " $0 ": skipped: " reason; waiting = 0; reason = "" }
    / \.\.\. skipped / { print "  " $0 }' "$details")
  if [ -n "$cases" ]; then
    printf '%s\n' "$cases"
    inside=$(printf '%s\n' "$cases" | wc -l)
  fi
fi
echo "$passed passed, $failed failed, $((skipped + inside)) skipped"
