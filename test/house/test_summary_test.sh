#!/usr/bin/env bash
# scripts/test_summary.sh counts what ctest, GoogleTest and unittest print.
#   test_summary_test.sh SOURCE_FOLDER
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/printed" <<'END'
      Start 12: a_test
 1/4 Test #12: a_test ...........................   Passed    0.10 sec
 2/4 Test  #3: b_test ...........................***Failed    0.20 sec
 3/4 Test #104: c ...............................***Skipped   0.00 sec
 4/4 Test  #5: d ................................***Timeout  30.00 sec
50% tests passed, 2 tests failed out of 4
END
cat >"$folder/details" <<'END'
3/4 Testing: c
3/4 Test: c
Output:
skipped: no torch
[ RUN      ] A.b/0
x.cpp:5: Skipped
no ptxas here

[  SKIPPED ] A.b/0 (0 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.b/0
test_x (y.Z) ... skipped "no GPU"
END
want='  b_test: Failed    0.20 sec
  c: Skipped   0.00 sec
  d: Timeout  30.00 sec
  c: skipped: no torch
  A.b/0: skipped: no ptxas here
  test_x (y.Z) ... skipped "no GPU"
1 passed, 2 failed, 3 skipped'
got=$("$1/scripts/test_summary.sh" "$folder/printed" "$folder/details")
[ "$got" = "$want" ] || { printf 'wanted:\n%s\ngot:\n%s\n' "$want" "$got"; exit 1; }
