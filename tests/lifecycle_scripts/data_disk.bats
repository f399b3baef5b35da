#!/usr/bin/env bats
# Where containerd's and kubelet's data go, now and after a reboot.

load sandbox

HELPER=node/hyperpod-data-disk
MOVE=steps/20_move_container_data.sh
NO_DISK="no data disk after 0 s: neither /opt/sagemaker nor /opt/dlami/nvme is mounted"
BINDS="mount --bind /opt/sagemaker/hyperpod/containerd /var/lib/containerd
mount --bind /opt/sagemaker/hyperpod/kubelet /var/lib/kubelet"

takes() {
  local disk="$1"
  shift
  attach "$@"

  on_node $HELPER wait

  same "$status $output" "0 data disk: $disk"
}

bats_test_function --description "takes the EBS volume" -- takes /opt/sagemaker /opt/sagemaker
bats_test_function --description "takes the EBS volume before the NVMe disks" -- takes /opt/sagemaker /opt/sagemaker /opt/dlami/nvme
bats_test_function --description "takes the NVMe disks where there is no EBS volume" -- takes /opt/dlami/nvme /opt/dlami/nvme

@test "waits for the EBS volume a while though NVMe is there" {
  attach /opt/dlami/nvme
  NODE_ENV=(HYPERPOD_DISK_PREFER_SECONDS=600 HYPERPOD_DISK_TIMEOUT_SECONDS=0)

  on_node $HELPER wait

  same "$status $output" "0 $NO_DISK"
}

@test "goes on without a disk" {
  on_node $HELPER wait

  same "$status $output" "0 $NO_DISK"
}

@test "a folder is no disk" {
  mkdir -p "$NODE/opt/sagemaker"

  on_node steps/10_wait_for_data_disk.sh

  same "$status $output" "0 $NO_DISK"
}

@test "leaves the data on the root volume where there is no disk" {
  running containerd.service kubelet.service

  on_node $MOVE

  same "$status $output" "0 $NO_DISK
WARNING: containerd's and kubelet's data stay on the root volume, which images may fill up"
  same "$(calls systemctl cp mount)" "systemctl daemon-reload"
  same "$(ls "$FAKE/active")" $'containerd.service\nkubelet.service'
  [[ ! -e "$NODE/var/lib/hyperpod-data-disk" ]]
}

@test "moves the data in a later run, when the disk has come" {
  on_node $MOVE
  attach /opt/sagemaker

  on_node $MOVE

  succeeds
  same "$(mounts)" $'/opt/sagemaker\n/var/lib/containerd\n/var/lib/kubelet'
  [[ -f "$FAKE/enabled/hyperpod-data-disk.service" ]]
}

@test "moves the data to the NVMe disks at once, which the step before has preferred the EBS volume to" {
  attach /opt/dlami/nvme
  NODE_ENV=(HYPERPOD_DISK_PREFER_SECONDS=600 HYPERPOD_DISK_TIMEOUT_SECONDS=600)

  on_node $MOVE

  succeeds
  same "$(calls mount)" "${BINDS//\/opt\/sagemaker/\/opt\/dlami\/nvme}"
}

@test "looks again until the disk is there" {
  # as HyperPod, which mounts it in the meantime
  NODE_ENV=(HYPERPOD_DISK_PREFER_SECONDS=600 HYPERPOD_DISK_TIMEOUT_SECONDS=60 HYPERPOD_DISK_POLL_SECONDS=2)
  mkdir -p "$NODE/opt/sagemaker"
  local sleep="$BATS_TEST_TMPDIR/sleeps"
  mkdir "$sleep"
  if has_mount_points; then
    printf '#!%s\necho "sleep $*" >>"$FAKE/calls"\nexec mount --bind "$FAKE" "$HYPERPOD_ROOT/opt/sagemaker"\n' "$BASH" >"$sleep/sleep"
  else
    printf '#!%s\necho "sleep $*" >>"$FAKE/calls"\necho /opt/sagemaker >>"$FAKE/mounts"\n' "$BASH" >"$sleep/sleep"
  fi
  chmod 755 "$sleep/sleep"
  FAKES="$sleep:$FAKES"

  on_node $HELPER wait

  same "$status $output" "0 data disk: /opt/sagemaker"
  same "$(calls sleep)" "sleep 2"
}

@test "stops the daemons while it copies and starts those that ran" {
  attach /opt/sagemaker
  running containerd.service

  on_node $MOVE

  succeeds
  same "$(calls systemctl cp mount | grep -v is-active)" "systemctl daemon-reload
systemctl stop containerd.service
cp -a --one-file-system /var/lib/containerd/. /opt/sagemaker/hyperpod/containerd/
cp -a --one-file-system /var/lib/kubelet/. /opt/sagemaker/hyperpod/kubelet/
systemctl start hyperpod-data-disk.service
$BINDS
systemctl start containerd.service
systemctl enable hyperpod-data-disk.service"
  [[ -f "$FAKE/active/containerd.service" && ! -f "$FAKE/active/kubelet.service" ]]
}

@test "starts containerd before kubelet" {
  attach /opt/sagemaker
  running kubelet.service containerd.service

  on_node $MOVE

  same "$(calls systemctl | grep -E ' (stop|start) (kubelet|containerd)')" "systemctl stop kubelet.service
systemctl stop containerd.service
systemctl start containerd.service
systemctl start kubelet.service"
}

@test "starts nothing that did not run" {
  attach /opt/sagemaker

  on_node $MOVE

  same "$(ls "$FAKE/active")" hyperpod-data-disk.service
}

@test "starts again what ran when the disk is full, and copies anew the next time" {
  attach /opt/sagemaker
  running containerd.service kubelet.service
  NODE_ENV+=(FAKE_FAIL="28 cp -a --one-file-system /var/lib/kubelet")

  on_node $MOVE

  same "$status $(mounts)" "28 /opt/sagemaker"
  same "$(ls "$FAKE/active")" $'containerd.service\nkubelet.service'

  unset 'NODE_ENV[-1]'
  put /var/lib/kubelet/since.json new
  on_node $MOVE

  succeeds
  holds /opt/sagemaker/hyperpod/kubelet/since.json new
}

@test "ends with the code of a daemon that does not start again" {
  attach /opt/sagemaker
  running containerd.service
  NODE_ENV+=(FAKE_FAIL="7 systemctl start containerd.service")

  on_node $MOVE

  same "$status" 7
}

# FAILS CODE: the step fails with CODE as FAKE_FAIL has it, and what ran runs again
fails_with() {
  attach /opt/sagemaker
  running containerd.service kubelet.service
  NODE_ENV+=(FAKE_FAIL="$1")

  on_node $MOVE

  same "$status" "$2"
  same "$(ls "$FAKE/active")" $'containerd.service\nkubelet.service'
  [[ ! -e "$NODE/var/lib/hyperpod-data-disk" ]]
}

for row in "6 systemctl daemon-reload" "5 systemctl stop kubelet.service"; do
  bats_test_function --description "ends with ${row%% *} when '${row#* }' does" -- fails_with "$row" "${row%% *}"
done
@test "ends with 4 when systemctl enable does, with the data moved" {
  attach /opt/sagemaker
  NODE_ENV+=(FAKE_FAIL="4 systemctl enable")

  on_node $MOVE

  same "$status" 4
  same "$(calls mount)" "$BINDS"
}

bats_test_function --description "ends with 1 when a bind fails" \
  -- fails_with "32 mount --bind /opt/sagemaker/hyperpod/kubelet" 1

@test "keeps the old data below the mount" {
  attach /opt/sagemaker
  on_node $MOVE

  reboot

  holds /var/lib/kubelet/config.json "{}"
}

@test "makes the folders where a daemon never ran" {
  attach /opt/sagemaker
  rm -r "$NODE/var/lib/kubelet"

  on_node $MOVE

  succeeds
  same "$(calls mount)" "$BINDS"
}

@test "binds again at boot without copying" {
  attach /opt/sagemaker
  on_node $MOVE
  put /opt/sagemaker/hyperpod/kubelet/since.json new
  reboot
  attach /opt/dlami/nvme /opt/sagemaker
  forget_calls

  on_node $HELPER bind

  succeeds
  same "$(calls mount cp systemctl)" "$BINDS"
  holds /opt/sagemaker/hyperpod/kubelet/since.json new
}

@test "waits at boot for the disk it chose and no other" {
  attach /opt/sagemaker
  on_node $MOVE
  reboot
  attach /opt/dlami/nvme

  on_node $HELPER bind

  same "$status" 75
  same "$(mounts)" /opt/dlami/nvme
}

@test "says at boot that the disk has lost its data" {
  attach /opt/sagemaker
  on_node $MOVE
  reboot
  attach /opt/sagemaker
  rm -r "$NODE/opt/sagemaker/hyperpod/kubelet"

  on_node $HELPER bind

  same "$status $output" "0 /var/lib/containerd is now /opt/sagemaker/hyperpod/containerd
/var/lib/kubelet stays on the root volume: there is no /opt/sagemaker/hyperpod/kubelet"
}

@test "drops what an older system left on the volume" {
  attach /opt/sagemaker
  put /opt/sagemaker/hyperpod/containerd/io.containerd.content/old AL2

  on_node $MOVE

  [[ ! -e "$NODE/opt/sagemaker/hyperpod/containerd/io.containerd.content/old" ]]
  holds /opt/sagemaker/hyperpod/containerd/io.containerd.content/pause layer
}

@test "leaves alone what the image has mounted elsewhere" {
  attach /opt/sagemaker /var/lib/containerd

  on_node $MOVE

  [[ "$output" == *"/var/lib/containerd is not on the root volume, left alone"* ]]
  same "$(calls mount)" "$(tail -1 <<<"$BINDS")"
}

@test "leaves alone what somebody else has linked elsewhere" {
  attach /opt/sagemaker
  mv "$NODE/var/lib/kubelet" "$NODE/opt/sagemaker/kubelet"
  ln -s "$NODE/opt/sagemaker/kubelet" "$NODE/var/lib/kubelet"

  on_node $MOVE

  [[ "$output" == *"/var/lib/kubelet is not on the root volume, left alone"* ]]
  same "$(calls mount)" "$(head -1 <<<"$BINDS")"
}

refuses() {
  on_node $HELPER "$@"

  same "$status $output" "64 usage: hyperpod-data-disk wait|move|bind"
}

bats_test_function --description "refuses no verb" -- refuses
bats_test_function --description "refuses a verb it does not know" -- refuses unmount

@test "the service binds before the daemons start" {
  attach /opt/sagemaker
  on_node $MOVE

  grep -Fx "Before=containerd.service kubelet.service" "$NODE/etc/systemd/system/hyperpod-data-disk.service"
  grep -Fx "ExecStart=/usr/local/sbin/hyperpod-data-disk bind" "$NODE/etc/systemd/system/hyperpod-data-disk.service"
  same "$(stat -c %a "$NODE/usr/local/sbin/hyperpod-data-disk")" 755
}

writes_reach_the_disk() {
  attach /opt/sagemaker
  on_node $MOVE

  put /var/lib/containerd/layer2 new

  same "$(cat "$BATS_TEST_TMPDIR/disks/opt/sagemaker/hyperpod/containerd/layer2")" new
}

if has_mount_points; then
  bats_test_function --description "what containerd writes reaches the disk" -- writes_reach_the_disk
fi
