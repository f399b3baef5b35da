#!/usr/bin/env bats
# EFA and the Lustre client, made ready where the machine and the image have them.

load sandbox

STEP=steps/40_load_modules.sh
BOOT_LIST=/etc/modules-load.d/hyperpod.conf
SETUP=/etc/eks/configure-efa-fsx-lustre-client/setup.sh
SERVICE=configure-efa-fsx-lustre-client.service

# MACHINE IMAGE LOADED: "efa" or "", modules, modules
loads() {
  if [[ "$1" == efa ]]; then plug_efa; fi
  # shellcheck disable=SC2086 # words
  modules $2

  on_node $STEP

  succeeds
  same "$(calls modprobe | cut -d' ' -f2 | paste -sd' ')" "$3"
  if [[ -n "$3" ]]; then
    holds $BOOT_LIST "${3// /$'\n'}"$'\n'
  else
    [[ ! -e "$NODE$BOOT_LIST" ]]
  fi
}

bats_test_function --description "loads everything with EFA" -- loads efa "efa lnet lustre" "efa lnet lustre"
bats_test_function --description "loads Lustre without EFA" -- loads "" "efa lnet lustre" "lnet lustre"
bats_test_function --description "loads EFA from an image without Lustre" -- loads efa efa efa
bats_test_function --description "loads nothing from an image that has nothing" -- loads efa "" ""
bats_test_function --description "loads nothing on a machine that has nothing" -- loads "" "" ""

@test "an ENA interface is no EFA" {
  plug 0000:00:02.0 0x1d0f 0xec20 0x020000
  modules efa

  on_node $STEP

  same "$(calls modprobe)" ""
}

@test "says what the image lacks" {
  on_node $STEP

  same "$output" $'module lnet: not in this image, skipped\nmodule lustre: not in this image, skipped'
}

@test "replaces a list that no longer holds" {
  put $BOOT_LIST $'something-else\n'
  modules lnet lustre

  on_node $STEP

  holds $BOOT_LIST $'lnet\nlustre\n'
}

# brings_setup CODE: have AWS's set-up in the image, which enables its service before it tries
brings_setup() {
  modules efa lnet lustre kefalnd
  put $SETUP "echo 'setup' >>\"\$FAKE/calls\"
touch \"\$FAKE/enabled/$SERVICE\"
exit $1
"
}

@test "has Lustre go over EFA with AWS's own set-up, which wants to load Lustre itself" {
  plug_efa
  brings_setup 0

  on_node $STEP

  same "$status $output" $'0 module efa: loaded\nLustre over EFA: set up'
  same "$(cut -d' ' -f1,2 "$FAKE/calls" | grep -v -e modinfo -e systemctl)" $'modprobe efa\nsetup'
  holds $BOOT_LIST $'efa\n'
}

@test "does not set up Lustre over EFA twice" {
  plug_efa
  brings_setup 0
  on_node $STEP
  forget_calls

  on_node $STEP

  same "$status $output" $'0 module efa: loaded\nLustre over EFA: set up already'
  same "$(grep -cx setup "$FAKE/calls")" 0
}

@test "has Lustre go over TCP where the set-up over EFA fails" {
  plug_efa
  brings_setup 3

  on_node $STEP

  same "$status $output" "0 module efa: loaded
Lustre over EFA: set-up failed with exit code 3, Lustre goes over TCP
module lnet: loaded
module lustre: loaded"
  holds $BOOT_LIST $'efa\nlnet\nlustre\n'
  [[ ! -e "$FAKE/enabled/$SERVICE" ]]
}

@test "has Lustre go over TCP without the module for EFA" {
  plug_efa
  brings_setup 0
  rm "$FAKE/modules/kefalnd"

  on_node $STEP

  [[ "$output" == *"Lustre over EFA: not in this image, Lustre goes over TCP"* ]]
  same "$(calls modprobe | tail -1)" "modprobe lustre"
}

@test "sets up nothing over EFA on a machine without it" {
  brings_setup 0

  on_node $STEP

  same "$output" $'module lnet: loaded\nmodule lustre: loaded'
}
