#!/usr/bin/env bash
# Manual pages and completions as they are installed: pages.sh KILN FOLDER. The same bytes for the same program.
set -euo pipefail
kiln=$1 folder=$2
rm -rf "$folder"
"$kiln" man-pages "$folder/man1" --quiet
gzip -9n "$folder"/man1/*.1
"$kiln" completion bash >"$folder/kiln"
"$kiln" completion zsh >"$folder/_kiln"
"$kiln" completion fish >"$folder/kiln.fish"
