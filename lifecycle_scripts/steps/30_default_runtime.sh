#!/usr/bin/env bash
# Makes containerd's default runtime the one that this machine can use: nvidia on NVIDIA GPUs, runc elsewhere.
set -euo pipefail

root="${HYPERPOD_ROOT:-}"
node="$(cd "$(dirname "${BASH_SOURCE[0]}")/../node" && pwd)"
config="$root/etc/containerd/config.toml"

fingerprint() {
  if [[ -f "$config" ]]; then cksum <"$config"; fi
}

install -C -D -m 0755 "$node/hyperpod-default-runtime" "$root/usr/local/sbin/hyperpod-default-runtime"
install -C -D -m 0755 "$node/hyperpod-devices.sh" "$root/usr/local/sbin/hyperpod-devices.sh"
install -C -D -m 0644 "$node/hyperpod-default-runtime.conf" \
  "$root/etc/systemd/system/containerd.service.d/hyperpod-default-runtime.conf"
systemctl daemon-reload

before="$(fingerprint)"
"$root/usr/local/sbin/hyperpod-default-runtime"
if [[ "$(fingerprint)" != "$before" ]]; then
  systemctl try-restart containerd.service
fi
