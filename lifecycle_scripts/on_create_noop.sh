#!/usr/bin/env bash
# Does nothing, for instance groups that need no preparation; HyperPod asks every group for a script.
set -euo pipefail

echo "[on_create_noop] nothing to do"
