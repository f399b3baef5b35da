#!/usr/bin/env bats
# The Lustre client: over EFA where the environment and the machine have it, else over TCP, else not at all.

load sandbox

STEP=steps/50_lustre_client.sh
HELPER=node/hyperpod-lustre-efa
BOOT_LIST=/etc/modules-load.d/hyperpod-lustre.conf
UNIT=hyperpod-lustre-efa.service
OF_AWS=configure-efa-fsx-lustre-client.service
OVER_TCP="WARNING: Lustre goes over TCP, and not over EFA
module lnet: loaded
module lustre: loaded"

setup() {
  bare_node
  download
}

# --- over TCP ---

# MODULES LINE LOADED
over_tcp() {
  machine m5.2xlarge
  # shellcheck disable=SC2086 # words
  modules $1
  if [[ -n "$2" ]]; then environment "$2"; fi

  on_node $STEP

  same "$status $output" $'0 module lnet: loaded\nmodule lustre: loaded'
  same "$(calls modprobe)" $'modprobe lnet\nmodprobe lustre'
  holds $BOOT_LIST $'lnet\nlustre\n'
  [[ ! -e "$NODE/etc/systemd/system/$UNIT" && ! -e "$NODE/etc/systemd/system/kubelet.service.d" ]]
}

bats_test_function --description "loads Lustre where the environment has no file system" -- over_tcp "lnet lustre" ""
bats_test_function --description "loads Lustre where its pods mount one" -- over_tcp "lnet lustre" "lustre=m5.2xlarge"
bats_test_function --description "leaves EFA alone where only others use it" \
  -- over_tcp "efa kefalnd lnet lustre" "lustre_over_efa=p5.48xlarge:8"
bats_test_function --description "knows its type from others that begin alike" \
  -- over_tcp "efa kefalnd lnet lustre" "lustre_over_efa=m5.2xlarge2:1 m5.2:1"

# MODULES FAILS SAYS LINES...: a node that nobody needs for Lustre
goes_on_without_lustre() {
  machine m5.2xlarge
  # shellcheck disable=SC2086 # words
  modules $1
  if [[ -n "$2" ]]; then NODE_ENV+=(FAKE_FAIL="$2"); fi
  environment "lustre=p5.48xlarge"

  on_node $STEP

  same "$status $output" "0 $3
WARNING: no Lustre client; pods that mount a Lustre file system cannot run on this node"
  [[ ! -e "$NODE$BOOT_LIST" ]]
}

bats_test_function --description "goes on with an image without Lustre" \
  -- goes_on_without_lustre "" "" "module lnet: not in this image"
bats_test_function --description "goes on with half of Lustre" \
  -- goes_on_without_lustre "lnet" "" $'module lnet: loaded\nmodule lustre: not in this image'
bats_test_function --description "goes on though Lustre does not load" \
  -- goes_on_without_lustre "lnet lustre" "1 modprobe lustre" $'module lnet: loaded'

# MODULES FAILS CODE SAYS: a node whose pods mount a file system
fails_without_lustre() {
  machine p5.48xlarge
  # shellcheck disable=SC2086 # words
  modules $1
  if [[ -n "$2" ]]; then NODE_ENV+=(FAKE_FAIL="$2"); fi
  environment "lustre=g5.8xlarge p5.48xlarge"

  on_node $STEP

  same "$status $output" "$3 $4
no Lustre client, and nodes of type p5.48xlarge mount a file system: this node is of no use"
}

bats_test_function --description "fails a node that needs Lustre with an image without" \
  -- fails_without_lustre "" "" 69 "module lnet: not in this image"
bats_test_function --description "fails a node that needs Lustre where it does not load" \
  -- fails_without_lustre "lnet lustre" "7 modprobe lustre" 7 "module lnet: loaded"

@test "nobody needs Lustre on a machine that does not say its type" {
  environment "lustre=p5.48xlarge"

  on_node $STEP

  same "$status $(tail -1 <<<"$output")" "0 WARNING: no Lustre client; pods that mount a Lustre file system cannot run on this node"
}

# --- not over EFA after all ---

# LACKS SAYS: a command that takes something away
waits_for() {
  p5 8
  eval "$1"

  on_node $STEP

  same "$status" 0
  [[ "$output" == *"Lustre over EFA: no $2 after 0 s; Lustre goes over TCP"* ]]
  [[ "$output" == *"$OVER_TCP" ]]
}

bats_test_function --description "waits for the network, and goes on over TCP without" \
  -- waits_for ': >"$FAKE/routes"' "default route"
bats_test_function --description "waits for EFA devices, and goes on over TCP without" \
  -- waits_for 'rm -r "$NODE/sys/class/infiniband"' "EFA device"

# FAILS SAYS: as FAKE_FAIL has it; the node goes on over TCP, and systemd tries again
falls_back() {
  p5 8
  NODE_ENV+=(FAKE_FAIL="$1")

  on_node $STEP

  same "$status" 0
  [[ "$output" == *"Lustre over EFA: $2; Lustre goes over TCP
Lustre over EFA: $UNIT failed; systemd tries it again
$OVER_TCP" ]]
  [[ ! -e "$NODE$BOOT_LIST" && -f "$FAKE/enabled/$UNIT" ]]
  same "$(cat "$FAKE/lnet")" "tcp ens5"
}

bats_test_function --description "falls back to TCP without kefalnd" \
  -- falls_back "1 modprobe kefalnd" "module kefalnd cannot be loaded"
bats_test_function --description "falls back to TCP where LNet cannot be configured" \
  -- falls_back "1 lnetctl lnet configure" "LNet cannot be configured"
bats_test_function --description "falls back to TCP where LNet does not take the interface for TCP" \
  -- falls_back "1 lnetctl net add --net tcp" "LNet did not take ens5 for TCP"
bats_test_function --description "falls back to TCP where no interface comes up" \
  -- falls_back "1 lnetctl net add --net efa" "no EFA interface came up"

@test "a unit that systemctl calls failed, and that is active, counts as active" {
  p5 8
  on_node $STEP
  NODE_ENV+=(FAKE_FAIL="1 systemctl start $UNIT")

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 8 interfaces are up"
}

@test "a unit that is active without an EFA interface counts as TCP" {
  p5 8
  on_node $STEP
  : >"$FAKE/lnet"

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: $UNIT is active, and no EFA interface is up in LNet
$OVER_TCP"
}

@test "fails a node that needs Lustre where neither EFA nor TCP works" {
  p5 8
  NODE_ENV+=(FAKE_FAIL="3 modprobe lnet")

  on_node $STEP

  same "$status $(tail -1 <<<"$output")" \
    "3 no Lustre client, and nodes of type p5.48xlarge mount a file system: this node is of no use"
}

# LACKS SAYS: a command that takes something away
says_what_the_image_lacks() {
  p5 8
  eval "$1"

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: $2
$OVER_TCP"
  holds $BOOT_LIST $'lnet\nlustre\n'
  [[ ! -e "$NODE/etc/systemd/system/$UNIT" ]]
}

while IFS='|' read -r lacks says; do
  bats_test_function --description "over TCP: $says" -- says_what_the_image_lacks "$lacks" "$says"
done <<'EOF'
al2|of Amazon's systems only Amazon Linux 2023 can do it
put /etc/os-release 'ID=ubuntu VERSION_ID="2023"'|of Amazon's systems only Amazon Linux 2023 can do it
echo 6.1.79-98.167.amzn2023.x86_64 >"$FAKE/kernel"|the kernel is 6.1.79-98.167.amzn2023.x86_64, and needs to be 6.1.79-99.167 at least
modules efa=2.12.0|module efa is 2.12.0, and needs to be 2.12.1 at least
rm "$FAKE/modules/efa"|the image has no module efa
modules lustre=2.12.8|module lustre is 2.12.8, and needs to be 2.15 at least
rm "$FAKE/modules/kefalnd"|the image has no module kefalnd
EOF

# TYPE KEFALND STATUS
kefalnd_is_new_enough() {
  p5 8
  machine "$1"
  modules "kefalnd=$2"

  on_node $HELPER check

  same "$status" "$3"
}

bats_test_function --description "p5 takes an old kefalnd" -- kefalnd_is_new_enough p5.48xlarge 1.0.0 0
bats_test_function --description "p6-b200 takes no old kefalnd" -- kefalnd_is_new_enough p6-b200.48xlarge 1.1.0 69
bats_test_function --description "p6-b300 takes no old kefalnd" -- kefalnd_is_new_enough p6-b300.48xlarge 1.0.9 69
bats_test_function --description "p6e-gb200 takes no old kefalnd" -- kefalnd_is_new_enough p6e-gb200.36xlarge 1.1.0 69
bats_test_function --description "p6-b200 takes kefalnd 1.1.1" -- kefalnd_is_new_enough p6-b200.48xlarge 1.1.1 0

# KERNEL
kernel_is_new_enough() {
  p5 8
  echo "$1" >"$FAKE/kernel"

  on_node $HELPER check

  same "$status $output" "0 "
}

for kernel in 6.1.79-99.167.amzn2023.x86_64 6.1.177-224.371.amzn2023.x86_64 6.12.100-1.amzn2023.aarch64 6.18.1; do
  bats_test_function --description "kernel $kernel is new enough" -- kernel_is_new_enough $kernel
done

@test "says that FSx does not support the type" {
  p5 8
  machine p4d.24xlarge
  environment "lustre=p4d.24xlarge" "lustre_over_efa=p5.48xlarge:8 p4d.24xlarge:0"

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: FSx does not support it on p4d.24xlarge
$OVER_TCP"
  same "$(calls lnetctl)" ""
}

# --- AWS's own set-up, in the image ---

brings_setup_of_aws() {
  p5 8
  put "/etc/systemd/system/$OF_AWS" $'[Service]\nExecStart=/usr/local/sbin/of-aws\n'
  put /usr/local/sbin/of-aws "#!$BASH
$1
" 755
  touch "$FAKE/enabled/$OF_AWS"
}

@test "leaves Lustre to AWS's set-up where the image has it, and lets systemd try it again" {
  brings_setup_of_aws 'mkdir -p "$HYPERPOD_ROOT/sys/module/lnet"; echo "efa rdmap9s0" >>"$FAKE/lnet"'

  on_node $STEP

  same "$status $output" "0 Lustre over EFA: 1 interfaces are up"
  grep -Fx "Restart=on-failure" "$NODE/etc/systemd/system/$OF_AWS.d/hyperpod.conf"
  [[ ! -e "$NODE/etc/systemd/system/$UNIT" ]]
  same "$(calls modprobe)" ""
}

@test "goes on over TCP where AWS's set-up fails, and leaves it enabled" {
  brings_setup_of_aws 'echo "IMDS does not answer"; exit 3'

  on_node $STEP

  same "$status $output" "0 Job for $OF_AWS failed
IMDS does not answer
Lustre over EFA: $OF_AWS failed; systemd tries it again
$OVER_TCP"
  [[ -f "$FAKE/enabled/$OF_AWS" && ! -e "$NODE$BOOT_LIST" ]]
}
