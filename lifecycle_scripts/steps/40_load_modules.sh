#!/usr/bin/env bash
# Loads the kernel modules of EFA and of the Lustre client where the image carries them, now and at every boot.
#
# Nothing is downloaded. A Lustre client over EFA needs AWS's own set-up of LNet, which belongs into a custom AMI.
set -euo pipefail

root="${HYPERPOD_ROOT:-}"
boot_list="$root/etc/modules-load.d/hyperpod.conf"

# PCI vendor 0x1d0f is Amazon, devices 0xefa0 and up are Elastic Fabric Adapters
has_efa() {
  local device
  for device in "$root"/sys/bus/pci/devices/*; do
    [[ -f "$device/vendor" && -f "$device/device" ]] || continue
    if [[ "$(<"$device/vendor")" == 0x1d0f && "$(<"$device/device")" == 0xefa* ]]; then return 0; fi
  done
  return 1
}

modules=""
if has_efa; then modules+="efa "; fi
modules+="lnet lustre"

loaded=""
for module in $modules; do
  if ! modinfo "$module" >/dev/null 2>&1; then
    echo "module $module: not in this image, skipped"
    continue
  fi
  modprobe "$module"
  echo "module $module: loaded"
  loaded+="$module"$'\n'
done

if [[ -n "$loaded" ]] && ! printf '%s' "$loaded" | cmp -s - "$boot_list"; then
  mkdir -p "$(dirname "$boot_list")"
  printf '%s' "$loaded" >"$boot_list"
fi
