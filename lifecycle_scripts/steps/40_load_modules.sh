#!/usr/bin/env bash
# Makes EFA and the Lustre client ready where machine and image have them, now and at every boot.
#
# Nothing is downloaded. Lustre goes over EFA where the image brings AWS's own set-up of it, as the EKS images for
# Amazon Linux 2023 do, and over TCP elsewhere; a file system without EFA is reached over TCP either way.
set -euo pipefail

node="$(cd "$(dirname "${BASH_SOURCE[0]}")/../node" && pwd)"
source "$node/hyperpod-devices.sh"

root="${HYPERPOD_ROOT:-}"
boot_list="$root/etc/modules-load.d/hyperpod.conf"
setup="$root/etc/eks/configure-efa-fsx-lustre-client/setup.sh"
setup_service=configure-efa-fsx-lustre-client.service

in_image() {
  modinfo "$1" >/dev/null 2>&1
}

loaded=""
load() {
  if ! in_image "$1"; then
    echo "module $1: not in this image, skipped"
    return
  fi
  modprobe "$1"
  echo "module $1: loaded"
  loaded+="$1"$'\n'
}

# AWS's set-up loads lnet and lustre itself and wants them unloaded, because it chooses their CPU partitions; a service
# that it installs does the same at every boot.
lustre_over_efa() {
  local code=0
  if [[ ! -f "$setup" ]] || ! in_image kefalnd; then
    echo "Lustre over EFA: not in this image, Lustre goes over TCP"
    return 1
  fi
  if systemctl is-enabled --quiet "$setup_service" 2>/dev/null; then
    echo "Lustre over EFA: set up already"
    return
  fi
  bash "$setup" || code=$?
  if ((code != 0)); then
    # no reason to fail: types whose EFA Lustre cannot use are refused here too
    echo "Lustre over EFA: set-up failed with exit code $code, Lustre goes over TCP"
    systemctl disable --quiet "$setup_service" 2>/dev/null || true
    return 1
  fi
  echo "Lustre over EFA: set up"
}

efa_devices="$(count_devices efa)"
if ((efa_devices > 0)); then load efa; fi
if ((efa_devices == 0)) || ! lustre_over_efa; then
  load lnet
  load lustre
fi

if [[ -n "$loaded" ]] && ! printf '%s' "$loaded" | cmp -s - "$boot_list"; then
  mkdir -p "$(dirname "$boot_list")"
  printf '%s' "$loaded" >"$boot_list"
fi
