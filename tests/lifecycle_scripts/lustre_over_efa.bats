#!/usr/bin/env bats
# Lustre over EFA: what LNet is told, with which CPUs, in which order; and how the node's label says so.

load sandbox

STEP=steps/50_lustre_client.sh
HELPER=node/hyperpod-lustre-efa
BOOT_LIST=/etc/modules-load.d/hyperpod-lustre.conf
OPTIONS=/etc/modprobe.d/hyperpod-lustre.conf
UNIT=hyperpod-lustre-efa.service
LABEL=hyperpod-cdk/lustre-transport

setup() {
  bare_node
  download
}

# what LNet was told, by kind
added() {
  calls lnetctl | sed -nE "s/^lnetctl net add --net $1 --if //p" | sort -V
}

@test "has Lustre go over EFA, by the documented steps" {
  p5 8

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 8 interfaces are up"
  same "$(calls modprobe lnetctl | grep -v -e 'net show' -e 'net add --net efa')" "modprobe efa
modprobe lnet
modprobe kefalnd ipif_name=ens5
modprobe ksocklnd
lnetctl lnet configure
lnetctl net del --net tcp
lnetctl net add --net tcp --if ens5
lnetctl set discovery 1
lnetctl udsp add --src efa --priority 0
modprobe lustre"
  same "$(ls "$FAKE/enabled")" $UNIT
  [[ -f "$FAKE/active/$UNIT" && ! -e "$NODE$BOOT_LIST" ]]
}

@test "gives every interface CPUs near it, where there are more than NUMA nodes" {
  p5 8

  on_node $STEP

  holds $OPTIONS $'options libcfs cpu_pattern="0[0,8] 1[1,9] 2[2,10] 3[3,11] 4[4,12] 5[5,13] 6[6,14] 7[7,15]"\n'
  same "$(added efa)" "rdmap9s0 --peer-credits 32 --cpt [0]
rdmap11s0 --peer-credits 32 --cpt [1]
rdmap13s0 --peer-credits 32 --cpt [2]
rdmap15s0 --peer-credits 32 --cpt [3]
rdmap17s0 --peer-credits 32 --cpt [4]
rdmap19s0 --peer-credits 32 --cpt [5]
rdmap21s0 --peer-credits 32 --cpt [6]
rdmap23s0 --peer-credits 32 --cpt [7]"
}

@test "leaves a NUMA node without an interface a partition of its own" {
  p5 4
  rm -r "$NODE"/sys/class/infiniband/rdmap{17,19,21,23}s0

  on_node $STEP

  holds $OPTIONS $'options libcfs cpu_pattern="0[0,8] 1[1,9] 2[2,10] 3[3,11] 4[4-7,12-15]"\n'
}

@test "takes interfaces evenly, and leaves partitions to Lustre where NUMA nodes are enough" {
  p5 2

  on_node $STEP

  same "$(added efa)" $'rdmap9s0 --peer-credits 32\nrdmap17s0 --peer-credits 32'
  holds $OPTIONS ""
}

@test "takes all interfaces where there are fewer than wanted" {
  p5 16

  on_node $STEP

  same "$output" "Lustre over EFA: 8 interfaces are up"
}

@test "sets what AWS advises for many CPUs" {
  p5 2
  numa_node 0 0-31
  numa_node 1 32-64

  on_node $STEP

  holds $OPTIONS $'options ksocklnd credits=2560\noptions ptlrpc ptlrpcd_per_cpt_max=32\n'
}

@test "leaves out NUMA nodes without CPUs, devices of other drivers, and NUMA nodes that the firmware does not show" {
  machine p6e-gb200.36xlarge
  environment "lustre_over_efa=p6e-gb200.36xlarge:8"
  modules efa=3.0.0 lnet lustre kefalnd=1.1.1 ksocklnd
  numa_node 0 0-71
  numa_node 2 ""
  efa_interface rdmap1s0 -1
  efa_interface mlx5_0 0 mlx5_core

  on_node $STEP

  same "$output" "Lustre over EFA: 1 interfaces are up"
  same "$(added efa)" "rdmap1s0 --peer-credits 32"
}

@test "gives up partitions that would have no CPU" {
  p5 8
  numa_node 0 0
  numa_node 1 1

  on_node $STEP

  same "$output" "Lustre over EFA: 8 interfaces are up"
  holds $OPTIONS ""
}

@test "goes by the default route with the smallest metric" {
  p5 1
  printf '%s\n' "default via 10.1.0.1 dev ens6 metric 600" "default via 10.1.0.1 dev ens7 proto dhcp metric 200" \
    "default via 10.1.0.1 dev ens8 metric 300" >"$FAKE/routes"

  on_node $STEP

  same "$(added tcp)" ens7
}

@test "unloads Lustre first, since partitions are made when it is loaded" {
  p5 8
  lnet

  on_node $STEP

  same "$(calls lustre_rmmod modprobe | head -3)" $'modprobe efa\nlustre_rmmod\nmodprobe lnet'
  same "$(added efa | tail -1)" "rdmap23s0 --peer-credits 32 --cpt [7]"
}

@test "leaves TCP and partitions alone where Lustre is in use" {
  p5 8
  lnet tcp ens5
  NODE_ENV+=(FAKE_FAIL="1 lustre_rmmod")

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 8 interfaces are up"
  same "$(added tcp)$(calls lnetctl | grep 'del --net tcp')" ""
  same "$(added efa | tail -1)" "rdmap23s0 --peer-credits 32"
  grep -Fx "WARNING: Lustre was in use before this, and keeps its CPU partitions" "$FAKE/journal"
}

@test "does nothing anew in a second run" {
  p5 8
  on_node $STEP
  forget_calls

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 8 interfaces are up"
  same "$(calls modprobe lustre_rmmod)$(calls lnetctl | grep -v 'net show')" ""
}

@test "configures Lustre anew at boot" {
  p5 8
  on_node $STEP
  reboot
  rm -r "$NODE/sys/module"
  : >"$FAKE/lnet"

  on_node $HELPER configure

  same "$status $output" "0 Lustre over EFA: 8 of 8 interfaces are up"
}

@test "says how many interfaces came up" {
  p5 8
  NODE_ENV+=(FAKE_FAIL="1 lnetctl net add --net efa --if rdmap9s0")

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 7 interfaces are up"
  grep -Fx "WARNING: LNet did not take rdmap9s0" "$FAKE/journal"
}

@test "finds a network that comes late" {
  p5 8
  : >"$FAKE/routes"
  NODE_ENV+=(HYPERPOD_EFA_WAIT_SECONDS=60)
  mkdir "$BATS_TEST_TMPDIR/late"
  printf '#!%s\necho "default via 10.1.0.1 dev ens5" >"$FAKE/routes"\n' "$BASH" >"$BATS_TEST_TMPDIR/late/sleep"
  chmod 755 "$BATS_TEST_TMPDIR/late/sleep"
  FAKES="$BATS_TEST_TMPDIR/late:$FAKES"

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 8 interfaces are up"
}

# --- the node's label ---

KUBELET=/etc/eks/kubelet/environment

# BEFORE AFTER: the text of kubelet's environment when kubelet starts
labels() {
  put $KUBELET "$1"$'\n'

  on_node $HELPER label

  same "$status $output" "0 "
  holds $KUBELET "$2"$'\n'
}

labels_tcp() {
  labels "NODEADM_KUBELET_ARGS=--cloud-provider=external --node-labels=a=b,c=d --v=2" \
    "NODEADM_KUBELET_ARGS=--cloud-provider=external --node-labels=$LABEL=tcp,a=b,c=d --v=2"
}

labels_efa_anew() {
  lnet efa rdmap9s0
  labels "NODEADM_KUBELET_ARGS=--node-labels=$LABEL=tcp,a=b" "NODEADM_KUBELET_ARGS=--node-labels=$LABEL=efa,a=b"
}

bats_test_function --description "labels a node with TCP" -- labels_tcp
bats_test_function --description "labels a node with EFA, where TCP stood" -- labels_efa_anew
bats_test_function --description "leaves a kubelet without labels alone" -- labels "OTHER=1" "OTHER=1"

@test "labels nothing where kubelet is not nodeadm's" {
  on_node $HELPER label

  same "$status $output" "0 "
}

# INTERFACES TRANSPORT
labels_when_kubelet_starts() {
  p5 "$1"
  put $KUBELET $'NODEADM_KUBELET_ARGS=--node-labels=a=b\n'
  on_node $STEP

  on_node "$FAKES/systemctl" start kubelet.service

  holds $KUBELET "NODEADM_KUBELET_ARGS=--node-labels=$LABEL=$2,a=b"$'\n'
}

bats_test_function --description "a node's label says EFA when kubelet starts" -- labels_when_kubelet_starts 8 efa
bats_test_function --description "a node's label says TCP when kubelet starts" -- labels_when_kubelet_starts 0 tcp

@test "says what it goes over" {
  on_node $HELPER transport
  same "$output $(calls lnetctl)" "tcp "
  lnet tcp ens5
  lnet efa rdmap9s0 rdmap11s0
  on_node $HELPER transport
  same "$output" efa
  on_node $HELPER interfaces
  same "$output" 2
}

@test "an interface that is down does not count" {
  lnet
  printf '#!%s\nprintf "net:\\n    - net type: efa\\n      local NI(s):\\n        - nid: 1@efa\\n          status: down\\n"\n' \
    "$BASH" >"$BATS_TEST_TMPDIR/lnetctl"
  chmod 755 "$BATS_TEST_TMPDIR/lnetctl"
  FAKES="$BATS_TEST_TMPDIR:$FAKES"

  on_node $HELPER transport

  same "$output" tcp
}

@test "the unit comes before kubelet, whose pods mount, and is not tried again for what the image lacks" {
  grep -Fx "Before=kubelet.service" "$SCRIPTS/node/$UNIT"
  grep -Fx "Restart=on-failure" "$SCRIPTS/node/$UNIT"
  grep -Fx "RestartPreventExitStatus=69" "$SCRIPTS/node/$UNIT"
}

@test "refuses a verb it does not know" {
  on_node $HELPER unmount

  same "$status $output" "64 usage: hyperpod-lustre-efa check|configure|interfaces|transport|label"
}
