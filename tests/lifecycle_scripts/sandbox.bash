# A HyperPod node in a folder, for the bats files beside this one: the real scripts run against it, the commands that
# only a node has are faked, and no other command is on their PATH than those that every Amazon Linux image has.
#
# HYPERPOD_SANDBOX          "namespace" where bats runs in user and mount namespaces of its own, as test_bats.py has it:
#                           mounts are real then. Otherwise they are faked too.
# HYPERPOD_SANDBOX_PYTHON   the interpreter that the node has as python3; by default this machine's
#
# What a test knows: NODE, the node's root; FAKE, what the fakes know and write down; SCRIPTS; NODE_ENV, variables for
# the next runs. FAKE_FAIL="28 cp -a" among those lets every call that begins so end with 28, FAKE_HANG="cp" hang.

SCRIPTS="${BASH_SOURCE[0]%/*}/../../lifecycle_scripts"
IMAGE_COMMANDS=(awk basename bash cat chmod cksum cmp cp cut dirname env grep install mkdir mv readlink rm sed
  sleep sort tee timeout touch tr wc)
if [[ "${HYPERPOD_SANDBOX:-}" == namespace ]]; then IMAGE_COMMANDS+=(mount mountpoint); fi

# fake COMMAND SCRIPT: write the call down, fail or hang as told, then run the script
fake() {
  printf '%s\n' "#!$BASH" "set -euo pipefail
call=\"$1 \$*\"
call=\"\${call//\$HYPERPOD_ROOT/}\"
printf '%s\n' \"\$call\" >>\"\$FAKE/calls\"
if [[ -n \"\${FAKE_FAIL:-}\" && \"\$call\" == \"\${FAKE_FAIL#* }\"* ]]; then exit \"\${FAKE_FAIL%% *}\"; fi
if [[ -n \"\${FAKE_HANG:-}\" && \"\$call\" == \"\$FAKE_HANG\"* ]]; then exec \"\$IMAGE/sleep\" 30; fi" "$2" >"$FAKES/$1"
}

setup_file() {
  local command paths=()
  export FAKES="$BATS_FILE_TMPDIR/fakes" IMAGE="$BATS_FILE_TMPDIR/image"
  mkdir -p "$FAKES" "$IMAGE"
  for command in "${IMAGE_COMMANDS[@]}"; do paths+=("$(type -P "$command")"); done
  ln -s "${paths[@]}" "$IMAGE"
  ln -s "${HYPERPOD_SANDBOX_PYTHON:-$(python3 -c 'import sys; print(sys._base_executable)')}" "$IMAGE/python3"

  # shellcheck disable=SC2016 # the fakes expand it
  write_fakes
  chmod 755 "$FAKES"/*
}

# Each of them runs a dozen times in a run of all steps, so they leave to other processes only what bash cannot do.
write_fakes() {
  fake cp 'exec "$IMAGE/cp" "$@"'
  fake sync ''
  fake sleep ''
  fake hostname 'echo "$(<"$FAKE/addresses")"'
  fake uname 'echo "$(<"$FAKE/kernel")"'
  fake containerd 'echo "$(<"$FAKE/containerd")"'
  fake journalctl 'echo "$(<"$FAKE/journal")"'
  fake ip 'echo "$(<"$FAKE/routes")"'
  # the module with the options that a file has for it; lnet brings libcfs, and Lustre brings lnet over TCP
  fake modprobe '
modules="$HYPERPOD_ROOT/sys/module"
[[ "$1" == efa ]] || "$IMAGE/mkdir" -p "$modules"/{libcfs/parameters,lnet}
"$IMAGE/mkdir" -p "$modules/$1"
if [[ -d "$modules/libcfs" && ! -f "$modules/libcfs/parameters/cpu_pattern" ]]; then
  "$IMAGE/sed" -nE "s/^options libcfs cpu_pattern=\"(.*)\"$/\1/p" "$HYPERPOD_ROOT"/etc/modprobe.d/*.conf \
    >"$modules/libcfs/parameters/cpu_pattern" 2>/dev/null || true
fi
if [[ "$1" == lustre && ! -s "$FAKE/lnet" ]]; then echo "tcp ens5" >"$FAKE/lnet"; fi'
  fake lustre_rmmod '
"$IMAGE/rm" -r "$HYPERPOD_ROOT"/sys/module/{libcfs,lnet}
"$IMAGE/rm" -rf "$HYPERPOD_ROOT"/sys/module/{lustre,kefalnd,ksocklnd}
: >"$FAKE/lnet"'
  fake lnetctl '
case "$1 $2" in
  "net add") echo "$4 $6" >>"$FAKE/lnet" ;;
  "net del") "$IMAGE/sed" -i "/^$4 /d" "$FAKE/lnet" ;;
  "net show")
    echo "net:"
    while read -r net interface; do
      printf "    - net type: %s\n      local NI(s):\n        - nid: 1@%s\n          status: up\n" "$net" "$net"
      printf "          interfaces:\n              0: %s\n" "$interface"
    done < <("$IMAGE/sort" "$FAKE/lnet")
    ;;
esac'
  fake modinfo '
if [[ "$1" == -F ]]; then shift 2; fi
read -r version <"$FAKE/modules/$1"
echo "$version"'
  fake systemctl '
units="$HYPERPOD_ROOT/etc/systemd/system"
run() {
  local key program
  while IFS="=" read -r key program; do
    if [[ "$key" != "$2" ]]; then continue; fi
    "$HYPERPOD_ROOT"${program#-} >>"$FAKE/journal" 2>&1 || return
  done <"$1"
}
begin() {
  if [[ -f "$units/$1" && -f "$FAKE/active/$1" ]]; then return; fi
  if [[ -d "$units/$1.d" ]]; then
    for file in "$units/$1.d"/*.conf; do run "$file" ExecStartPre || true; done
  fi
  if [[ -f "$units/$1" ]]; then
    run "$units/$1" ExecStart || { echo "Job for $1 failed" >&2; exit 1; }
  fi
  : >"$FAKE/active/$1"
}
case "$1" in
  daemon-reload) ;;
  is-active) [[ -f "$FAKE/active/$3" ]] ;;
  is-enabled) [[ -f "$FAKE/enabled/$3" ]] ;;
  enable) [[ -f "$units/$2" ]] && : >"$FAKE/enabled/$2" ;;
  disable) rm "$FAKE/enabled/$3" ;;
  stop) rm "$FAKE/active/$2" ;;
  start) begin "$2" ;;
  try-restart) if [[ -f "$FAKE/active/$2" ]]; then begin "$2"; fi ;;
  *) echo "systemctl: no $1 here" >&2; exit 64 ;;
esac'
  if [[ "${HYPERPOD_SANDBOX:-}" == namespace ]]; then
    fake mount 'exec "$IMAGE/mount" "$@"'
    fake mountpoint 'exec "$IMAGE/mountpoint" "$@"'
  else
    fake mount 'printf "%s\n" "${3#"$HYPERPOD_ROOT"}" >>"$FAKE/mounts"'
    fake mountpoint 'grep -Fxq "${2#"$HYPERPOD_ROOT"}" "$FAKE/mounts"'
  fi
}

# A bare node: containerd and kubelet have data, nothing is mounted, no device is plugged in, none of our modules is there.
bare_node() {
  NODE="$BATS_TEST_TMPDIR/node"
  FAKE="$BATS_TEST_TMPDIR/fake"
  NODE_ENV=(HYPERPOD_DISK_PREFER_SECONDS=0 HYPERPOD_DISK_TIMEOUT_SECONDS=0 HYPERPOD_EFA_WAIT_SECONDS=0)
  mkdir -p "$FAKE"/{active,enabled,modules} \
    "$NODE"/{etc,sys/bus/pci/devices,var/lib/{containerd/io.containerd.content,kubelet}}
  : >"$FAKE/calls" >"$FAKE/mounts" >"$FAKE/lnet" >"$FAKE/journal"
  echo "default via 10.1.0.1 dev ens5 proto dhcp src 10.1.2.3 metric 512" >"$FAKE/routes"
  echo "10.1.2.3 10.1.2.4 " >"$FAKE/addresses"
  put /var/lib/containerd/io.containerd.content/pause layer
  put /var/lib/kubelet/config.json "{}"
  al2023
}

setup() {
  bare_node
}

teardown() {
  unmount
}

al2() {
  put /etc/os-release $'NAME="Amazon Linux"\nVERSION="2"\nID="amzn"\nVERSION_ID="2"\nPRETTY_NAME="Amazon Linux 2"\n'
  echo 5.10.240-238.955.amzn2.x86_64 >"$FAKE/kernel"
  echo "containerd github.com/containerd/containerd 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da" >"$FAKE/containerd"
}

al2023() {
  put /etc/os-release $'NAME="Amazon Linux"\nVERSION="2023"\nID="amzn"\nVERSION_ID="2023"\nPRETTY_NAME="Amazon Linux 2023.8.20250915"\n'
  echo 6.1.147-172.266.amzn2023.x86_64 >"$FAKE/kernel"
  echo "containerd github.com/containerd/containerd/v2 2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376" >"$FAKE/containerd"
}

# put PATH TEXT [MODE]
put() {
  local file="$NODE$1"
  if [[ ! -d "${file%/*}" ]]; then mkdir -p "${file%/*}"; fi
  printf '%s' "$2" >"$file"
  if [[ -n "${3:-}" ]]; then chmod "$3" "$file"; fi
}

# holds PATH TEXT: a file of the node is this text, to the byte
holds() {
  diff <(printf '%s' "$2") "$NODE$1"
}

has_mount_points() {
  [[ "${HYPERPOD_SANDBOX:-}" == namespace ]]
}

# attach PATH...: have disks mounted; what is on them outlives a reboot
attach() {
  local path
  for path; do
    mkdir -p "$NODE$path"
    if has_mount_points; then
      mkdir -p "$BATS_TEST_TMPDIR/disks$path"
      mount --bind "$BATS_TEST_TMPDIR/disks$path" "$NODE$path"
    else
      echo "$path" >>"$FAKE/mounts"
    fi
  done
}

# Everything that is mounted on the node, one after the other
mounts() {
  if has_mount_points; then
    awk -v node="$NODE/" 'index($5, node) == 1 { print substr($5, length(node)) }' /proc/self/mountinfo
  else
    cat "$FAKE/mounts"
  fi
}

unmount() {
  if has_mount_points; then
    mounts | tac | while read -r path; do umount "$NODE$path"; done
  fi
}

reboot() {
  unmount
  : >"$FAKE/mounts"
  rm -f "$FAKE"/active/*
}

running() {
  local unit
  for unit; do touch "$FAKE/active/$unit"; done
}

# plug ADDRESS VENDOR DEVICE CLASS: have a PCI device
plug() {
  put "/sys/bus/pci/devices/$1/vendor" "$2"$'\n'
  put "/sys/bus/pci/devices/$1/device" "$3"$'\n'
  put "/sys/bus/pci/devices/$1/class" "$4"$'\n'
}

plug_gpu() {
  plug 0000:00:1e.0 0x10de 0x2330 0x030200
}

plug_efa() {
  plug 0000:00:02.0 0x1d0f 0xefa2 0x020000
}

# modules NAME[=VERSION]...: have them in the image
modules() {
  local module
  for module; do
    if [[ "$module" != *=* ]]; then module+="=2.15.6"; fi
    echo "${module#*=}" >"$FAKE/modules/${module%%=*}"
  done
}

# lnet NETWORK INTERFACE...: have LNet loaded, with interfaces that are up
lnet() {
  local interface
  mkdir -p "$NODE"/sys/module/{libcfs/parameters,lnet}
  : >"$NODE/sys/module/libcfs/parameters/cpu_pattern"
  for interface in "${@:2}"; do echo "$1 $interface" >>"$FAKE/lnet"; done
}

machine() {
  put /sys/devices/virtual/dmi/id/product_name "$1"$'\n'
}

# efa_interface NAME NUMA [DRIVER]
efa_interface() {
  local device="/sys/class/infiniband/$1/device"
  put "$device/numa_node" "$2"$'\n'
  ln -s "../../../../bus/pci/drivers/${3:-efa}" "$NODE$device/driver"
}

numa_node() {
  put "/sys/devices/system/node/node$1/cpulist" "$2"$'\n'
}

# p5 INTERFACES: a machine that can reach a file system over EFA, with two NUMA nodes of 8 CPUs each
p5() {
  local number
  machine p5.48xlarge
  environment "lustre=p5.48xlarge" "lustre_over_efa=p5.48xlarge:$1"
  modules efa=3.0.0a lnet lustre kefalnd=1.2.2 ksocklnd
  numa_node 0 0-3,8-11
  numa_node 1 4-7,12-15
  for number in 0 1 2 3 4 5 6 7; do efa_interface "rdmap$((9 + 2 * number))s0" $((number / 4)); done
}

# The folder as it comes out of S3, which keeps no executable bit; SCRIPTS are those from then on
download() {
  mkdir -p "$NODE/tmp"
  cp -rL "$SCRIPTS" "$NODE/tmp/downloaded"
  chmod 644 "$NODE"/tmp/downloaded/{*.sh,*/*}
  SCRIPTS="$NODE/tmp/downloaded"
}

# environment LINE...: what hyperpod-cdk writes beside the scripts
environment() {
  printf '%s\n' "$@" >"$SCRIPTS/environment.conf"
}

# on_node SCRIPT [ARGUMENT...]: run one of the scripts; status and output as bats' own run
on_node() {
  local script="$1"
  shift
  if [[ "$script" != /* ]]; then script="$SCRIPTS/$script"; fi
  run env -i PATH="$FAKES:$IMAGE" FAKE="$FAKE" IMAGE="$IMAGE" HYPERPOD_ROOT="$NODE" "${NODE_ENV[@]}" \
    "$BASH" "$script" "$@"
  output="${output//$NODE/}"
}

# calls COMMAND...: their calls so far, in order
calls() {
  local pattern
  pattern="$(IFS='|' && echo "$*")"
  sed -nE "/^($pattern) /s/ *$//p" "$FAKE/calls"
}

forget_calls() {
  : >"$FAKE/calls"
}

# Every file of the node but its log, with mode and sum
files() {
  find "$NODE" -type f ! -name provisioning.log -exec stat -c '%n %a' {} + -exec cksum {} + | sort
}

# same GOT WANTED
same() {
  if [[ "$1" != "$2" ]]; then
    printf 'got:\n%s\nwanted:\n%s\n' "$1" "$2"
    return 1
  fi
}

succeeds() {
  same "$status: $output" "0: $output"
}
