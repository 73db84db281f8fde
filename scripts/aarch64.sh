#!/usr/bin/env bash
# Builds `kiln` for 64-bit Arm Linux on this machine (preset aarch64).
#   scripts/aarch64.sh [--sysroot-only] [TARGET...]       default target: kiln
#
# 1. The sysroot, build/aarch64-sysroot: Debian's arm64 packages of what scripts/setup.sh installs for this machine, with everything that they
#    depend on, unpacked and not installed. apt works with folders of its own (build/aarch64-apt), so the machine's package database neither
#    changes nor needs a foreign architecture. About 330 MB are downloaded, once; a changed list of packages below makes the sysroot anew.
# 2. The programs that the build runs are this machine's: flatc, mlir-tblgen, protoc, and our compile_library, which is built here (preset ci).
# 3. The cross build, with clang-22, lld-22 and the toolchain file cmake/aarch64.cmake.
# Programs of the build run here with qemu-user: qemu-aarch64 -L build/aarch64-sysroot build/aarch64/tools/kiln ...; ctest does so by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
only_sysroot=no
[[ ${1:-} == --sysroot-only ]] && only_sysroot=yes && shift

packages=(
  libc6-dev libstdc++-12-dev
  llvm-22-dev libmlir-22-dev mlir-22-tools libclang-22-dev libclang-cpp22 liblld-22-dev
  libzstd-dev libxxhash-dev libsodium-dev libarchive-dev libprotobuf-dev libonnx-dev
  libflatbuffers-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  spirv-tools spirv-headers libcurl4-openssl-dev libpython3-dev
)

sysroot=$PWD/build/aarch64-sysroot
if [[ $(cat "$sysroot/packages" 2>/dev/null) != "${packages[*]}" ]]; then
  apt=$PWD/build/aarch64-apt
  rm -rf "$sysroot"
  mkdir -p "$sysroot" "$apt"/{lists,archives}/partial
  : >"$apt/status"  # no package counts as installed
  cat >"$apt/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
EOF
  echo "aarch64: downloading packages for arm64"
  APT_CONFIG=$apt/apt.conf apt-get update -qq
  APT_CONFIG=$apt/apt.conf apt-get install -qq --download-only -y "${packages[@]}" >"$apt/log" 2>&1 || { tail "$apt/log"; exit 1; }
  echo "aarch64: unpacking $(find "$apt/archives" -name '*.deb' | wc -l) packages"
  for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  # Links with an absolute target would lead into this machine's files.
  find "$sysroot" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfn "$(realpath -sm --relative-to="$(dirname "$link")" "$sysroot$(readlink "$link")")" "$link"
  done
  rm -f "$apt"/archives/*.deb
  echo "${packages[*]}" >"$sysroot/packages"
fi
[[ $only_sysroot == yes ]] && exit

scripts/build.sh ci compile_library
scripts/build.sh aarch64 "${@:-kiln}"
