#!/usr/bin/env bash
# The main job on one real architecture (SqueezeNet 1.1, 5 MB): compile it into one portable file, look inside, run it cold
# (kernels are finalized for this CPU and cached), run it again warm, and check it against the built-in reference.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release kiln
kiln=$PWD/build/release/tools/kiln
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/python/bin/python test/models/fill.py test/models/squeezenet1_1.onnx -o "$work/squeezenet1_1.onnx"

step() { printf '\n\033[1m$ kiln %s\033[0m\n' "$*"; local begin=$(date +%s%N); "$kiln" "$@"; printf -- '-- %d ms\n' $((($(date +%s%N) - begin) / 1000000)); }
export KILN_CACHE_DIR=$work/cache
cd "$work"
step compile squeezenet1_1.onnx -o squeezenet1_1.kiln
step inspect squeezenet1_1.kiln
step run squeezenet1_1.kiln
step run squeezenet1_1.kiln
step perf squeezenet1_1.kiln -n 50
step verify squeezenet1_1.onnx
