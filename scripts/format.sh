#!/usr/bin/env bash
# Formats the C++ of the tree with clang-format 22, or with --check names the files that are not formatted and exits 1.
# HIP sources and the headers for them are left out: clang-format does not understand their macros.
#
#     scripts/format.sh [--check] [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
if [ "${1:-}" = --check ]; then mode=(--dry-run --Werror); shift; fi
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(git ls-files '*.cpp' '*.hpp' runtime/kiln.h); fi
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 40 clang-format-22 "${mode[@]}"
