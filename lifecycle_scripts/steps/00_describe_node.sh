#!/usr/bin/env bash
# Says which node this is and what its image brings. Changes nothing, and what cannot be read is "unknown": a log that
# says less is no reason to throw a node away.
set -euo pipefail

node="$(cd "$(dirname "${BASH_SOURCE[0]}")/../node" && pwd)"
source "$node/hyperpod-devices.sh"

root="${HYPERPOD_ROOT:-}"
machine="$root/sys/devices/virtual/dmi/id"

first_line() {
  local line=""
  if [[ -r "$1" ]]; then read -r line <"$1" || true; fi
  echo "${line:-unknown}"
}

system() {
  sed -nE "s/^$1=\"?([^\"]*)\"?\$/\1/p" "$root/etc/os-release" 2>/dev/null || true
}

# Prints cluster, group and instance type, with tabs between. HyperPod lists every machine of the cluster with its
# instance id and its address in the user's VPC; the list may be missing, or older than this machine.
place() {
  local config="$root/opt/ml/config/resource_config.json"
  if [[ ! -f "$config" ]]; then return; fi
  python3 -I - "$config" "$1" "$2" <<'PYTHON'
import json, sys

path, instance_id, addresses = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    config = json.load(file)
groups = [
    group
    for group in config.get("InstanceGroups") or []
    for instance in group.get("Instances") or []
    if instance.get("InstanceId") == instance_id or instance.get("CustomerIpAddress") in addresses.split()
]
group = groups[0] if len(groups) == 1 else {}
print(
    config["ClusterConfig"].get("ClusterName") or "unknown",
    group.get("Name") or "unknown",
    group.get("InstanceType") or "unknown",
    sep="\t",
)
PYTHON
}

instance_id="$(first_line "$machine/board_asset_tag")"
addresses="$(hostname -I 2>/dev/null || true)"
found="$(place "$instance_id" "$addresses" 2>/dev/null || true)"
IFS=$'\t' read -r cluster group instance_type <<<"${found:-unknown	unknown	unknown}"
# the machine itself says g5.8xlarge where HyperPod says ml.g5.8xlarge
if [[ "$instance_type" == unknown ]]; then instance_type="$(first_line "$machine/product_name")"; fi

os_name="$(system PRETTY_NAME)"
kernel="$(uname -r || true)"
read -r _ _ containerd _ <<<"$(containerd --version 2>/dev/null || true)"
lustre="$(modinfo -F version lustre 2>/dev/null || true)"

echo "cluster $cluster, instance group $group, instance $instance_id, $instance_type"
echo "${os_name:-unknown system}, kernel ${kernel:-unknown}, containerd ${containerd:-unknown}, Lustre client ${lustre:-none}"
echo "NVIDIA GPUs: $(count_devices nvidia_gpu), EFA devices: $(count_devices efa)"
case "$(system ID) $(system VERSION_ID)" in
  "amzn 2023" | "amzn 2") ;;
  *) echo "these scripts are written for Amazon Linux 2023 and 2, and this is neither" ;;
esac
