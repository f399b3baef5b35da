#!/usr/bin/env bats
# Which runtime containerd uses by default, for each machine and each configuration an image may bring.

load sandbox

HELPER=node/hyperpod-default-runtime
STEP=steps/30_default_runtime.sh
CONFIG=/etc/containerd/config.toml
NVIDIA=/usr/bin/nvidia-container-runtime
CRI='plugins."io.containerd.grpc.v1.cri"'

# Each shape_... RUNTIME BINARY: a configuration whose only runtime is the default

# containerd 1 on both systems
shape_2() {
  cat <<CONFIG
version = 2
root = "/var/lib/containerd"
[$CRI.containerd]
default_runtime_name = "$1"
discard_unpacked_layers = true
[$CRI.containerd.runtimes.$1]
runtime_type = "io.containerd.runc.v2"
[$CRI.containerd.runtimes.$1.options]
BinaryName = "$2"
SystemdCgroup = true
[$CRI.cni]
bin_dir = "/opt/cni/bin"
CONFIG
}

# containerd 2 on Amazon Linux 2023
shape_3() {
  cat <<CONFIG
version = 3
[plugins]
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "$1"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.$1]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.$1.options]
        BinaryName = "$2"
CONFIG
}

# the oldest images of Amazon Linux 2 for GPUs, with the default at the end
shape_1() {
  cat <<CONFIG
root = "/var/lib/containerd"
[plugins.cri.containerd.runtimes.$1]
runtime_type = "io.containerd.runtime.v1.linux"
[plugins.cri.containerd.runtimes.$1.options]
Runtime = "$2"
SystemdCgroup = true
[plugins.cri.containerd]
default_runtime_name = "$1"
CONFIG
}

gpu_node() {
  plug_gpu
  put $NVIDIA "" 755
}

# configured CONFIG...: have it, with its last line break
configured() {
  put $CONFIG "$*"$'\n'
}

keeps_nvidia_off_a_cpu_node() {
  put $NVIDIA "" 755
  put /usr/sbin/runc "" 755
  put /usr/bin/runc "" 755
  configured "$("$1" nvidia "$2")"

  on_node $HELPER

  same "$status $output" "0 default runtime changed from nvidia to runc"
  holds $CONFIG "$("$1" runc /usr/sbin/runc)"$'\n'
}

gives_nvidia_to_a_gpu_node() {
  gpu_node
  put /usr/bin/runc "" 755
  configured "$("$1" runc /usr/bin/runc)"

  on_node $HELPER

  same "$status $output" "0 default runtime changed from runc to nvidia"
  holds $CONFIG "$("$1" nvidia $NVIDIA)"$'\n'
}

for shape in shape_1 shape_2 shape_3; do
  bats_test_function --description "$shape: a CPU node does not get the nvidia runtime" \
    -- keeps_nvidia_off_a_cpu_node $shape $NVIDIA
  bats_test_function --description "$shape: a GPU node gets the nvidia runtime" -- gives_nvidia_to_a_gpu_node $shape
done
bats_test_function --description "a CPU node does not get the nvidia runtime by another name" \
  -- keeps_nvidia_off_a_cpu_node shape_1 /etc/docker-runtimes.d/nvidia

@test "knows an NVIDIA GPU by its PCI ids" {
  local vendor class runtime other what
  put $NVIDIA "" 755
  while read -r vendor class runtime what; do
    other=nvidia
    if [[ "$runtime" == nvidia ]]; then other=runc; fi
    plug 0000:00:1e.0 "$vendor" 0x2330 "$class"
    configured "$(shape_2 $other runc)"

    on_node $HELPER

    same "$what: $output" "$what: default runtime changed from $other to $runtime"
  done <<ROWS
0x10de 0x030200 nvidia an H100, a 3D controller
0x10de 0x030000 nvidia a VGA controller
0x10de 0x068000 runc an NVSwitch alone
0x1d0f 0x088000 runc Trainium
0x1d0f 0x030000 runc the display of the console
ROWS
}

@test "a GPU node without NVIDIA's runtime keeps runc" {
  plug_gpu
  configured "$(shape_2 runc /usr/sbin/runc)"

  on_node $HELPER

  same "$output" "default runtime is runc already"
}

@test "uses the wanted runtime as the image describes it" {
  local both runc="[$CRI.containerd.runtimes.runc]
runtime_type = \"io.containerd.runc.v2\""
  both="$(shape_2 nvidia $NVIDIA)"$'\n'"$runc"
  configured "$both"
  chmod 664 "$NODE$CONFIG"

  on_node $HELPER

  same "$(stat -c %a "$NODE$CONFIG")" 664

  holds $CONFIG "${both/default_runtime_name = \"nvidia\"/default_runtime_name = \"runc\"}"$'\n'
}

@test "names NVIDIA's binary where the image names none" {
  gpu_node
  configured "$(shape_2 runc x | grep -v BinaryName)"

  on_node $HELPER

  holds $CONFIG "$(shape_2 nvidia $NVIDIA)"$'\n'
}

@test "names NVIDIA's binary where the image has no options" {
  gpu_node
  configured "[$CRI.containerd]
  default_runtime_name = 'runc' # EKS
  [$CRI.containerd.runtimes.runc]
    runtime_type = \"io.containerd.runc.v2\""

  on_node $HELPER

  holds $CONFIG "[$CRI.containerd]
  default_runtime_name = \"nvidia\"
  [$CRI.containerd.runtimes.nvidia]
    runtime_type = \"io.containerd.runc.v2\"
  [$CRI.containerd.runtimes.nvidia.options]
  BinaryName = \"$NVIDIA\"
"
}

@test "keeps mode and other runtimes" {
  local other="[$CRI.containerd.runtimes.nvidia-cdi]
runtime_type = \"io.containerd.runc.v2\"
[$CRI.containerd.runtimes.nvidia-cdi.options]
BinaryName = \"/usr/bin/nvidia-container-runtime.cdi\""
  put $CONFIG "$(shape_2 nvidia $NVIDIA)"$'\n'"$other"$'\n' 600

  on_node $HELPER

  holds $CONFIG "$(shape_2 runc /usr/sbin/runc)"$'\n'"$other"$'\n'
  same "$(stat -c %a "$NODE$CONFIG") $(ls "$NODE/etc/containerd")" "600 config.toml"
}

# SAID CONFIG
leaves_alone() {
  if [[ "$1" == *"none is described"* ]]; then gpu_node; fi
  configured "$2"

  on_node $HELPER

  same "$status $output" "0 $1"
  holds $CONFIG "$2"$'\n'
}

bats_test_function --description "leaves another runtime alone" \
  -- leaves_alone "default runtime is 'kata', left alone" "$(shape_2 kata /usr/bin/kata)"
bats_test_function --description "leaves a configuration without a default alone" \
  -- leaves_alone "default runtime is '', left alone" "version = 2"
bats_test_function --description "leaves the right runtime alone" \
  -- leaves_alone "default runtime is runc already" "$(shape_2 runc /usr/sbin/runc)"
bats_test_function --description "describes no runtime by itself" \
  -- leaves_alone "default runtime is runc and none is described, left alone" "default_runtime_name = \"runc\""

@test "waits for the configuration to be written" {
  on_node $HELPER

  same "$status $output" "0 no $CONFIG yet, nothing to set"
}

@test "restarts containerd only after a change" {
  configured "$(shape_2 nvidia $NVIDIA)"

  on_node $STEP
  same "$(calls systemctl)" $'systemctl daemon-reload\nsystemctl try-restart containerd.service'

  forget_calls
  on_node $STEP
  same "$(calls systemctl)" "systemctl daemon-reload"
}

@test "holds when the image writes its configuration anew before containerd starts" {
  on_node $STEP
  configured "$(shape_2 nvidia $NVIDIA)"

  env -i PATH="$FAKES:$IMAGE" FAKE="$FAKE" HYPERPOD_ROOT="$NODE" "$FAKES/systemctl" start containerd.service

  holds $CONFIG "$(shape_2 runc /usr/sbin/runc)"$'\n'
}

@test "is run before each start of containerd and never keeps it from starting" {
  on_node $STEP

  local unit="$NODE/etc/systemd/system/containerd.service.d/hyperpod-default-runtime.conf"
  same "$(head -1 "$unit")" "[Service]"
  same "$(tail -1 "$unit")" "ExecStartPre=-/usr/local/sbin/hyperpod-default-runtime"
}
