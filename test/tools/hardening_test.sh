#!/bin/sh
# The executable has the protections of cmake/hardening.cmake:   hardening_test.sh KILN
set -e
has() { readelf -W "$1" "$3" | grep -q "$2" || { echo "$3: no $2"; exit 1; }; }
has -d BIND_NOW "$1"
has -l GNU_RELRO "$1"
has -s __stack_chk_fail "$1"
has -s _chk@ "$1"
