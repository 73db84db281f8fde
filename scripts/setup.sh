#!/usr/bin/env bash
# Installs what Kiln builds with and tests against, from Debian packages. Idempotent; needs root. Quick when nothing is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache python3-venv python3-dev git
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools clang-22 clang-format-22 libclang-22-dev libclang-rt-22-dev lld-22 liblld-22-dev
  libamdhip64-dev libzstd-dev libxxhash-dev libsodium-dev libarchive-dev libprotobuf-dev protobuf-compiler libonnx-dev libonnx-testdata
  libflatbuffers-dev flatbuffers-compiler libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  spirv-tools spirv-headers
  libcurl4-openssl-dev redis-server nginx-light minisign
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "setup: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  if ! apt-cache show llvm-22-dev >/dev/null 2>&1; then
    echo "setup: this machine's package sources have no LLVM 22: add LLVM's own Debian repository (suite llvm-toolchain-bookworm-22) and try again" >&2
    exit 1
  fi
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# The models' weights are made by a Python script that needs onnx and numpy; onnxruntime gives the second opinion;
# nanobind builds the Python package (python/).
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/build/python
if ! "$venv/bin/python" -c 'import ml_dtypes, nanobind, numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "setup: making a Python environment with onnx, onnxruntime and nanobind"
  "$venv/bin/python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null || rm -rf "$venv"
  [ -d "$venv" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check ml_dtypes nanobind numpy onnx onnxruntime
fi
