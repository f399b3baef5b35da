#!/usr/bin/env bats
# The whole run on a new node, of Amazon Linux 2023 and 2: order, log, exit codes, and a second run that changes nothing.

load sandbox

STEPS="00_describe_node
10_wait_for_data_disk
20_move_container_data
30_default_runtime
40_load_efa
50_lustre_client"
CONFIG=/etc/containerd/config.toml
LOG=/var/log/provision/provisioning.log

# as nodeadm writes it with NVIDIA's runtime in the image
CONFIG_al2023="version = 3
root = \"/var/lib/containerd\"
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = \"nvidia\"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
runtime_type = \"io.containerd.runc.v2\"
base_runtime_spec = \"/etc/containerd/base-runtime-spec.json\"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
BinaryName = \"/usr/bin/nvidia-container-runtime\"
SystemdCgroup = true
"
# as bootstrap.sh copies it and nvidia-ctk completes it
CONFIG_al2="version = 2
root = \"/var/lib/containerd\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd]
default_runtime_name = \"nvidia\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
runtime_type = \"io.containerd.runc.v2\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]
runtime_type = \"io.containerd.runc.v2\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]
BinaryName = \"/usr/bin/nvidia-container-runtime\"
"

setup() {
  bare_node
  download
  ON_CREATE="$SCRIPTS/on_create.sh"
}

# ready FLAVOUR [cpu]: as HyperPod hands a node over, with the same image for machines with and without a GPU
ready() {
  local config="CONFIG_$1"
  "$1"
  attach /opt/sagemaker
  running containerd.service kubelet.service
  modules efa lnet lustre
  put /usr/bin/nvidia-container-runtime "" 755
  put $CONFIG "${!config}"
  if [[ "${2:-}" != cpu ]]; then
    plug_gpu
    plug_efa
  fi
}

steps_begun() {
  sed -nE 's/^.*\[on_create\] ([0-9]\w+): start$/\1/p' <<<"$output"
}

last_line() {
  tail -1 <<<"$output" | sed -E 's/^[-0-9]{10}T[:0-9]{8}Z //; s/after [0-9]+ s/after N s/'
}

leaves_a_node_as_it_should_be() {
  local config="CONFIG_$1"
  ready "$1"

  on_node "$ON_CREATE"

  succeeds
  same "$(steps_begun)" "$STEPS"
  same "$(last_line)" "[on_create] done"
  holds $LOG "$output"$'\n'
  same "$(mounts)" $'/opt/sagemaker\n/var/lib/containerd\n/var/lib/kubelet'
  holds /opt/sagemaker/hyperpod/containerd/io.containerd.content/pause layer
  holds /opt/sagemaker/hyperpod/kubelet/config.json "{}"
  same "$(ls "$FAKE/active")" $'containerd.service\nhyperpod-data-disk.service\nkubelet.service'
  holds $CONFIG "${!config}"
  same "$(calls modprobe)" $'modprobe efa\nmodprobe lnet\nmodprobe lustre'
  holds /etc/modules-load.d/hyperpod-efa.conf $'efa\n'
  holds /etc/modules-load.d/hyperpod-lustre.conf $'lnet\nlustre\n'
  changes_nothing_now
}

leaves_a_node_without_gpu_as_it_should_be() {
  ready "$1" cpu

  on_node "$ON_CREATE"

  succeeds
  grep -Fx 'default_runtime_name = "runc"' "$NODE$CONFIG"
  same "$(calls modprobe)" $'modprobe lnet\nmodprobe lustre'
  changes_nothing_now
}

changes_nothing_now() {
  local before mounted
  before="$(files)"
  mounted="$(mounts)"
  forget_calls

  on_node "$ON_CREATE"

  succeeds
  same "$(files)" "$before"
  same "$(mounts)" "$mounted"
  same "$(calls mount cp)" ""
  same "$(calls systemctl | grep -E ' (stop|restart|try-restart) ')" ""
}

# FLAVOUR MACHINE FAILS CODE STEP: FAILS as FAKE_FAIL has it
ends_with_the_code_of_the_step() {
  ready "$1" "$2"
  machine g5.8xlarge
  environment "lustre=g5.8xlarge"
  NODE_ENV+=(FAKE_FAIL="$3")

  on_node "$ON_CREATE"

  same "$status $(last_line)" "$4 [on_create] $5: failed with exit code $4 after N s"
  # until the log is shipped
  same "$(calls sync sleep)" $'sync\nsleep 60'
  same "$(steps_begun | tail -1)" "$5"
  holds $LOG "$output"$'\n'
}

# every step that can fail
failures=(
  "gpu|28 cp -a --one-file-system /var/lib/containerd|28|20_move_container_data"
  "cpu|3 systemctl try-restart containerd.service|3|30_default_runtime"
  # what timeout ends with too, though this took no time
  "gpu|124 modprobe efa|124|40_load_efa"
  "cpu|5 modprobe lnet|5|50_lustre_client"
)

for flavour in al2023 al2; do
  bats_test_function --description "$flavour: leaves a node as it should be, and changes nothing the second time" \
    -- leaves_a_node_as_it_should_be $flavour
  bats_test_function --description "$flavour: leaves a node without a GPU as it should be, and changes nothing the second time" \
    -- leaves_a_node_without_gpu_as_it_should_be $flavour
  for row in "${failures[@]}"; do
    IFS='|' read -r machine fails code step <<<"$row"
    bats_test_function --description "$flavour: ends with $code when '${fails#* }' ends with ${fails%% *}" \
      -- ends_with_the_code_of_the_step $flavour "$machine" "$fails" "$code" "$step"
  done
done

@test "says why a bind failed, which only the journal knows, and can be run again" {
  ready al2023
  NODE_ENV+=(FAKE_FAIL="32 mount --bind /opt/sagemaker/hyperpod/kubelet")
  on_node "$ON_CREATE"
  [[ "$output" == *$'Job for hyperpod-data-disk.service failed\n/var/lib/containerd is now /opt/sagemaker/hyperpod/containerd\n'* ]]
  unset 'NODE_ENV[-1]'
  put /var/lib/kubelet/since.json new

  on_node "$ON_CREATE"

  succeeds
  holds /opt/sagemaker/hyperpod/kubelet/since.json new
  same "$(mounts)" $'/opt/sagemaker\n/var/lib/containerd\n/var/lib/kubelet'
  holds /opt/sagemaker/hyperpod/containerd/io.containerd.content/pause layer
  same "$(ls "$FAKE/active")" $'containerd.service\nhyperpod-data-disk.service\nkubelet.service'
}

# WHAT FAILS: what a node can do without, as FAKE_FAIL has it
goes_on_without() {
  ready al2023 cpu
  NODE_ENV+=(FAKE_FAIL="$2")

  on_node "$ON_CREATE"

  same "$status $(last_line)" "0 [on_create] done"
  grep -q "WARNING: .*$1" <<<"$output"
}

bats_test_function --description "goes on without a data disk" -- goes_on_without "root volume" "1 mountpoint -q /opt"
bats_test_function --description "goes on without Lustre where nobody mounts it" \
  -- goes_on_without "no Lustre client" "1 modprobe lustre"

@test "ends a step that takes too long" {
  ready al2023
  NODE_ENV+=(FAKE_HANG="mountpoint" HYPERPOD_STEP_SECONDS=1)

  on_node "$ON_CREATE"

  same "$status $(last_line)" "124 [on_create] 10_wait_for_data_disk: ended after N s, the longest that a step may take"
}

@test "a failed run waits until its log is shipped as long as it is told, and tells the time in UTC" {
  local before
  NODE_ENV+=(HYPERPOD_LOG_GRACE_SECONDS=7 TZ=ELSEWHERE-9 FAKE_FAIL="6 systemctl daemon-reload")
  attach /opt/sagemaker
  before="$(date -u +%Y-%m-%dT%H)"

  on_node "$ON_CREATE"

  same "$status $(calls sync sleep)" $'6 sync\nsleep 7'
  [[ "$output" == "$before"* || "$output" == "$(date -u +%Y-%m-%dT%H)"* ]]
}

@test "a log that cannot be written ends no step and changes no code" {
  ready al2023
  mkdir -p "$NODE$LOG"
  NODE_ENV+=(FAKE_FAIL="9 modprobe efa")

  on_node "$ON_CREATE"

  same "$status $(last_line)" "9 [on_create] 40_load_efa: failed with exit code 9 after N s"
}

@test "fails when only on_create.sh was uploaded" {
  put /tmp/alone/on_create.sh "$(cat "$ON_CREATE")"

  on_node "$NODE/tmp/alone/on_create.sh"

  same "$status $(last_line)" "66 [on_create] no script in /tmp/alone/steps; upload the whole folder, not on_create.sh alone"
}

@test "fails in the first step when node/ was not uploaded" {
  mkdir -p "$NODE/tmp/part"
  cp -r "$SCRIPTS/on_create.sh" "$SCRIPTS/steps" "$NODE/tmp/part"

  on_node "$NODE/tmp/part/on_create.sh"

  same "$status $(last_line)" "1 [on_create] 00_describe_node: failed with exit code 1 after N s"
}

@test "the script that does nothing does nothing" {
  local before
  before="$(files)"

  on_node on_create_noop.sh

  same "$status $output" "0 [on_create_noop] nothing to do"
  same "$(files)" "$before"
  same "$(cat "$FAKE/calls")" ""
}
