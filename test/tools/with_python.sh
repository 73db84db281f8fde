#!/usr/bin/env bash
# with_python.sh PYTHON SCRIPT ARGS...: runs the script, or says why it cannot and exits 77 (ctest: skipped).
python=$1
shift
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
  echo "skipped: no Python environment with onnx and onnxruntime at $python (scripts/setup.sh makes it)"
  exit 77
fi
exec "$python" "$@"
