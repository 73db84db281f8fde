#!/usr/bin/env bash
# Runs a command in which programs for 64-bit Arm start like any other, with qemu-user:
#   scripts/with_qemu.sh build/aarch64/tools/kiln devices
#   scripts/with_qemu.sh ctest --test-dir build/aarch64 -R tools_commands
# The kernel is told about qemu-aarch64 in a user namespace of the command's own (Linux 6.7 or later), so nothing changes for the rest of the
# machine, and no process of Kiln that starts itself again (compile workers) has to know. QEMU_CPU chooses the processor (default: everything
# that qemu knows): "cortex-a53" has no dot products, "max,sve256=on,sve512=off,sve-default-vector-length=32" has SVE of 256 bits. Exit code 77: this
# machine cannot.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export QEMU_LD_PREFIX=${QEMU_LD_PREFIX:-$root/build/aarch64-sysroot} QEMU_CPU=${QEMU_CPU:-max,pauth-impdef=on}
qemu=$(command -v qemu-aarch64) || { echo "with_qemu: no qemu-aarch64 (Debian: qemu-user)" >&2; exit 77; }
# Magic and mask: the first 20 bytes of an ELF file, little-endian, 64 bits, any system's ABI, executable or shared object, AArch64.
rule=':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'$qemu':OCF'
exec unshare --user --map-root-user --mount bash -c '
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc && printf %s "$1" >/proc/sys/fs/binfmt_misc/register || {
    echo "with_qemu: this kernel has no binfmt_misc in user namespaces" >&2; exit 77; }
  shift
  exec "$@"' with_qemu "$rule" "$@"
