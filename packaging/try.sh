#!/usr/bin/env bash
# Installs packages in a copy of a root folder with Debian's base system and tries every one: try.sh ROOT MODEL.onnx SITE
# PACKAGE.deb... MODEL is squeezenet1_1 with weights; SITE is a folder with Python packages, of which `onnxruntime` is
# tried with the plug-in. Needs root and Debian's archive.
set -euo pipefail
root=$1 model=$2 site=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
inside() {
  unshare --mount --pid --fork sh -c 'root=$1; shift; mount -t proc proc "$root/proc"; exec env -i HOME=/work LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"' sh "$root" "$@"
}
quietly() { inside sh -c '"$@" >/work/log 2>&1 || { tail -20 /work/log; exit 1; }' sh "$@"; }
mkdir -p "$root/work/packages" "$root/work/site"
cp "$@" "$root/work/packages/"
cp "$model" "$root/work/squeezenet1_1.onnx"
cp "$here/../test/install/consumer/"* "$here/../examples/run_portable.c" "$root/work/"
quietly apt-get update -qq
quietly sh -c 'apt-get install -y -qq --no-install-recommends /work/packages/*.deb'

inside kiln compile /work/squeezenet1_1.onnx -o /work/model.kiln --quiet
inside kiln run /work/model.kiln
inside sh -c 'dpkg -V kiln libkiln0 libkiln-runtime0 libkiln-dev python3-kiln onnxruntime-ep-kiln'
inside sh -c 'for f in /usr/bin/kiln /usr/lib/*/libkiln*.so.0 /usr/lib/*/kiln-compile-worker /usr/lib/*/libonnxruntime_providers_kiln.so; do ldd "$f"; done | grep "not found"' && exit 1
inside python3 - <<'END_OF_PYTHON'
import kiln, numpy
with kiln.open("/work/model.kiln").session() as session:
    result = session(numpy.zeros((1, 3, 224, 224), numpy.float32))
    assert result.shape == (1, 1000) and numpy.isfinite(result).all()
assert kiln.compile("/work/squeezenet1_1.onnx").inputs
END_OF_PYTHON
inside python3 -m kiln devices >/dev/null
echo "runs      compile, run, Python and python3 -m kiln in a clean Debian"

# The plug-in, with onnxruntime from outside: Debian 12 has no package of it.
for name in onnxruntime google flatbuffers packaging; do [ -e "$site/$name" ] && cp -r "$site/$name" "$root/work/site/"; done
cp -r "$site"/numpy* "$root/work/site/"
inside env PYTHONPATH=/work/site python3 - <<'END_OF_PYTHON'
import glob, numpy, onnxruntime as ort
ort.register_execution_provider_library("kiln", glob.glob("/usr/lib/*/libonnxruntime_providers_kiln.so")[0])
options = ort.SessionOptions()
options.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == "KilnExecutionProvider"], {})
session = ort.InferenceSession("/work/squeezenet1_1.onnx", options)
assert session.get_providers()[0] == "KilnExecutionProvider", session.get_providers()
name, x = session.get_inputs()[0].name, numpy.random.default_rng(0).standard_normal((1, 3, 224, 224), numpy.float32)
expected = ort.InferenceSession("/work/squeezenet1_1.onnx", providers=["CPUExecutionProvider"]).run(None, {name: x})[0]
numpy.testing.assert_allclose(session.run(None, {name: x})[0], expected, rtol=1e-3, atol=1e-4)
print("plug-in   onnxruntime", ort.__version__, "agrees with its own provider")
END_OF_PYTHON

# C programs against the development package, by pkg-config and by CMake.
quietly apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config cmake make
inside sh -c 'cd /work && cc -o run_portable run_portable.c $(pkg-config --cflags --libs kiln-runtime) && ./run_portable model.kiln'
inside sh -c 'cmake -S /work -B /work/build -DCMAKE_BUILD_TYPE=Release >/work/log && cmake --build /work/build >>/work/log && /work/build/consumer'
echo "develops  C programs by pkg-config and by CMake"

quietly apt-get purge -y -qq kiln libkiln0 libkiln-runtime0
left=$(inside find / -xdev -name '*kiln*' -not -path '/work/*' -not -path '/proc/*' -not -path '/var/*')
[ -z "$left" ] || { echo "packages: error: left after purge: $left" >&2 && exit 1; }
echo "purge     leaves nothing"
