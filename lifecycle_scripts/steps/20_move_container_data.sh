#!/usr/bin/env bash
# Moves containerd's and kubelet's data off the 100 GB root volume, and keeps it moved after a reboot. Without a data
# disk they stay there.
set -euo pipefail

root="${HYPERPOD_ROOT:-}"
node="$(cd "$(dirname "${BASH_SOURCE[0]}")/../node" && pwd)"

install -C -D -m 0755 "$node/hyperpod-data-disk" "$root/usr/local/sbin/hyperpod-data-disk"
install -C -D -m 0644 "$node/hyperpod-data-disk.service" "$root/etc/systemd/system/hyperpod-data-disk.service"
systemctl daemon-reload
# the step before has waited
export HYPERPOD_DISK_PREFER_SECONDS=0 HYPERPOD_DISK_TIMEOUT_SECONDS=0
"$root/usr/local/sbin/hyperpod-data-disk" move
if [[ -s "$root/var/lib/hyperpod-data-disk" ]]; then systemctl enable hyperpod-data-disk.service; fi
