#!/usr/bin/env bash
# Makes the Lustre client ready, over EFA where the environment has a file system that this machine can reach so.
#
# environment.conf, which hyperpod-cdk writes beside these scripts, says by instance type whose nodes mount a file
# system ("lustre=p5.48xlarge g6.8xlarge") and how many EFA interfaces they use of it where it has EFA
# ("lustre_over_efa=p5.48xlarge:8 p4d.24xlarge:0"; 0: FSx does not support the type). Without the file nobody needs
# Lustre, and it goes over TCP.
#
# Nothing is downloaded. Only a node that mounts a file system and has no Lustre client is failed: its pods would wait
# for ever. Whatever keeps Lustre off EFA is said, here and in the node's label, and Lustre goes over TCP.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
node="$here/../node"
root="${HYPERPOD_ROOT:-}"
units="$root/etc/systemd/system"
program="$root/usr/local/sbin/hyperpod-lustre-efa"
boot_list="$root/etc/modules-load.d/hyperpod-lustre.conf"
# the unit of AWS's own set-up, which an image may bring
of_aws=configure-efa-fsx-lustre-client.service

instance_type=""
if [[ -r "$root/sys/devices/virtual/dmi/id/product_name" ]]; then
  read -r instance_type <"$root/sys/devices/virtual/dmi/id/product_name" || true
fi

# entry KEY: what the environment says under KEY of this machine's type
entry() {
  local each
  for each in $(sed -n "s/^$1=//p" "$here/../environment.conf" 2>/dev/null || true); do
    if [[ "${each%%:*}" == "$instance_type" ]]; then
      echo "$each"
      return
    fi
  done
}

install_program() {
  install -C -D -m 0755 "$node/hyperpod-lustre-efa" "$program"
  install -C -D -m 0644 "$node/hyperpod-lustre-label.conf" "$units/kubelet.service.d/hyperpod-lustre-label.conf"
}

# start UNIT: whether it is active then. systemctl's own answer counts for nothing: it may be an error although the unit
# came up in the end, and no error although it did not.
start() {
  systemctl daemon-reload
  systemctl enable "$1" || true
  systemctl start "$1" || true
  if systemctl is-active --quiet "$1"; then return; fi
  # what it said is in the journal only, which nobody ships
  journalctl --unit "$1" --lines 30 --no-pager || true
  return 1
}

# what configures Lustre here, at every boot; it loads the modules itself
unit=""

# lustre_over_efa INTERFACES: whether it goes so now
lustre_over_efa() {
  if (($1 == 0)); then
    echo "Lustre over EFA: FSx does not support it on $instance_type"
    return 1
  fi
  if systemctl is-enabled --quiet "$of_aws" 2>/dev/null; then
    unit="$of_aws"
    install -C -D -m 0644 "$node/configure-efa-fsx-lustre-client.conf" "$units/$of_aws.d/hyperpod.conf"
  else
    "$program" check || return 1
    unit=hyperpod-lustre-efa.service
    install -C -D -m 0644 "$node/hyperpod-lustre-efa.service" "$units/$unit"
    mkdir -p "$root/var/lib"
    echo "$1" >"$root/var/lib/hyperpod-lustre-efa"
  fi
  if ! start "$unit"; then
    echo "Lustre over EFA: $unit failed; systemd tries it again"
    return 1
  fi
  if [[ "$("$program" transport)" != efa ]]; then
    echo "Lustre over EFA: $unit is active, and no EFA interface is up in LNet"
    return 1
  fi
  echo "Lustre over EFA: $("$program" interfaces) interfaces are up"
}

over_tcp() {
  local module
  for module in lnet lustre; do
    if ! modinfo "$module" >/dev/null 2>&1; then
      echo "module $module: not in this image"
      return 69
    fi
    modprobe "$module" || return
    echo "module $module: loaded"
  done
  if [[ -n "$unit" ]]; then return; fi
  mkdir -p "$(dirname "$boot_list")"
  printf '%s\n' lnet lustre >"$boot_list"
}

interfaces="$(entry lustre_over_efa)"
if [[ -n "$interfaces" ]]; then
  install_program
  if lustre_over_efa "${interfaces#*:}"; then exit; fi
  echo "WARNING: Lustre goes over TCP, and not over EFA"
fi

code=0
over_tcp || code=$?
if ((code != 0)); then
  if [[ -n "$(entry lustre)" ]]; then
    echo "no Lustre client, and nodes of type $instance_type mount a file system: this node is of no use" >&2
    exit "$code"
  fi
  echo "WARNING: no Lustre client; pods that mount a Lustre file system cannot run on this node"
fi
