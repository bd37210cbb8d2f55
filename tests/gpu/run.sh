#!/usr/bin/env bash
# PyTorch's attention on a GPU, backend by backend: the shipped cases, and 4,096 keys. Without a GPU it says so and ends.
set -euo pipefail
cd "$(dirname "$0")/../.."
python="${PYTHON:-python3}"
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: PyTorch is not installed"
  exit 0
fi
if ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
  echo "skipped: there is no GPU"
  exit 0
fi
exec "$python" tests/gpu/check.py cuda "$@"
