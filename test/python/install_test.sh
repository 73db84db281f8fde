#!/usr/bin/env bash
# What `pip install .` does, without the network: builds python/ as a project of its own against an installed package of
# this build, adds the Python files, moves the result, and runs a model with it.
#   install_test.sh CMAKE BUILD_FOLDER SOURCE_FOLDER PYTHON
set -euo pipefail
cmake=$1 build=$2 source=$3 python=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for component in runtime dev compiler command; do
  "$cmake" --install "$build" --component $component --prefix "$folder/prefix" >/dev/null
done
"$cmake" -S "$source/python" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix" \
  -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" -DPython_EXECUTABLE="$python" -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" >/dev/null
"$cmake" --build "$folder/build" >/dev/null
"$cmake" --install "$folder/build" --prefix "$folder/installed" >/dev/null
cp -r "$source"/python/kiln/* "$folder/installed/kiln/"
rm -rf "$folder/prefix" "$folder/build"
mv "$folder/installed" "$folder/site"
cat >"$folder/try.py" <<'END'
import kiln, numpy, os, sys
from onnx import TensorProto, helper
shape = ["N", 4]
tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", tensors[:1], tensors[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
with kiln.compile(model).session(threads=1) as session:
    assert (session(numpy.ones((3, 4), numpy.float32)) == 2).all()
with open("/proc/self/maps") as maps:
    used = {line.split()[-1] for line in maps if "libkiln" in line}
folder = os.path.realpath(sys.argv[1])
print(*sorted(os.path.relpath(os.path.realpath(path), folder) for path in used))
END
used=$(env -u LD_LIBRARY_PATH PYTHONPATH="$folder/site" KILN_CACHE_DIR="$folder/cache" XDG_CONFIG_HOME="$folder/config" "$python" "$folder/try.py" "$folder/site")
echo "used: $used"
test "$used" = "kiln/lib/libkiln.so.0 kiln/lib/libkiln_runtime.so.0"
PYTHONPATH="$folder/site" "$python" -m kiln --version
