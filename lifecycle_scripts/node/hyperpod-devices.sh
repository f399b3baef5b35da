#!/usr/bin/env bash
# What is plugged into this machine, by its PCI ids; to be sourced. It is asked before drivers are loaded.
#
# HYPERPOD_ROOT   prefix of every path; empty, except in tests
set -euo pipefail

# PCI vendor 0x10de is NVIDIA, class 0x03 a display controller (0x06 would be an NVSwitch)
is_nvidia_gpu() {
  [[ "$(<"$1/vendor")" == 0x10de && "$(<"$1/class")" == 0x03* ]]
}

# PCI vendor 0x1d0f is Amazon, devices 0xefa0 and up are Elastic Fabric Adapters
is_efa() {
  [[ "$(<"$1/vendor")" == 0x1d0f && "$(<"$1/device")" == 0xefa* ]]
}

# count_devices nvidia_gpu|efa
count_devices() {
  local device number=0
  for device in "${HYPERPOD_ROOT:-}"/sys/bus/pci/devices/*; do
    if [[ -f "$device/vendor" && -f "$device/device" && -f "$device/class" ]] && "is_$1" "$device"; then
      number=$((number + 1))
    fi
  done
  echo "$number"
}
