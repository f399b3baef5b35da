#!/usr/bin/env bash
# Loads the driver of EFA where the machine has such a device and the image has the driver, now and at every boot.
set -euo pipefail

node="$(cd "$(dirname "${BASH_SOURCE[0]}")/../node" && pwd)"
source "$node/hyperpod-devices.sh"

boot_list="${HYPERPOD_ROOT:-}/etc/modules-load.d/hyperpod-efa.conf"

if (("$(count_devices efa)" == 0)); then
  echo "no EFA device"
elif ! modinfo efa >/dev/null 2>&1; then
  echo "module efa: not in this image, skipped"
else
  # without it the node shows no EFA to Kubernetes, and the jobs it was made for wait for ever
  modprobe efa
  echo "module efa: loaded"
  mkdir -p "$(dirname "$boot_list")"
  echo efa >"$boot_list"
fi
