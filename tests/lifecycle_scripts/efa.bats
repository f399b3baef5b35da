#!/usr/bin/env bats
# The driver of EFA, loaded where the machine and the image have it.

load sandbox

STEP=steps/40_load_efa.sh
BOOT_LIST=/etc/modules-load.d/hyperpod-efa.conf

@test "loads EFA, now and at every boot" {
  plug_efa
  modules efa

  on_node $STEP

  same "$status $output" "0 module efa: loaded"
  same "$(calls modprobe)" "modprobe efa"
  holds $BOOT_LIST $'efa\n'
}

@test "says that the image has no EFA" {
  plug_efa

  on_node $STEP

  same "$status $output" "0 module efa: not in this image, skipped"
  [[ ! -e "$NODE$BOOT_LIST" ]]
}

@test "loads nothing on a machine without EFA" {
  plug 0000:00:02.0 0x1d0f 0xec20 0x020000
  modules efa

  on_node $STEP

  same "$status $output $(calls modprobe)" "0 no EFA device "
}

@test "fails where the device is there and its driver does not load" {
  plug_efa
  modules efa
  NODE_ENV+=(FAKE_FAIL="4 modprobe efa")

  on_node $STEP

  same "$status" 4
}
