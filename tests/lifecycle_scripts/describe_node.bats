#!/usr/bin/env bats
# What a node says of itself at the beginning of its log.

load sandbox

STEP=steps/00_describe_node.sh
CONFIG=/opt/ml/config/resource_config.json
RESOURCES='{
  "ClusterConfig": {"ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abc", "ClusterName": "prod"},
  "InstanceGroups": [
    {"Name": "system", "InstanceType": "ml.m5.2xlarge", "Instances": [
      {"InstanceName": "system-1", "AgentIpAddress": "169.254.0.1", "CustomerIpAddress": "10.1.9.9", "InstanceId": "i-0a"}]},
    {"Name": "empty", "InstanceType": "ml.c5.large", "Instances": null},
    {"InstanceType": "ml.p5.48xlarge", "Name": "h100", "Instances": [
      {"InstanceName": "h100-1", "AgentIpAddress": "169.254.0.2", "CustomerIpAddress": "10.1.2.3", "InstanceId": "i-0b"}]}
  ]
}'

instance() {
  put /sys/devices/virtual/dmi/id/board_asset_tag "$1"$'\n'
  machine "$2"
}

@test "says cluster, group, type, system, devices" {
  instance i-0b p5.48xlarge
  echo 10.9.9.9 >"$FAKE/addresses"
  put $CONFIG "$RESOURCES"
  plug_gpu
  plug 0000:00:1f.0 0x10de 0x2330 0x030200
  plug_efa
  modules lustre

  on_node $STEP

  same "$status $output" "0 cluster prod, instance group h100, instance i-0b, ml.p5.48xlarge
Amazon Linux 2023.8.20250915, kernel 6.1.147-172.266.amzn2023.x86_64, containerd 2.1.4, Lustre client 2.15.6
NVIDIA GPUs: 2, EFA devices: 1"
}

@test "knows its group by its address too" {
  al2
  put $CONFIG "$RESOURCES"

  on_node $STEP

  same "$status $output" "0 cluster prod, instance group h100, instance unknown, ml.p5.48xlarge
Amazon Linux 2, kernel 5.10.240-238.955.amzn2.x86_64, containerd 1.7.27, Lustre client none
NVIDIA GPUs: 0, EFA devices: 0"
}

@test "names the cluster before it has groups" {
  instance i-0b p5.48xlarge
  put $CONFIG '{"ClusterConfig": {"ClusterName": "prod"}, "InstanceGroups": null}'

  on_node $STEP

  same "$(head -1 <<<"$output")" "cluster prod, instance group unknown, instance i-0b, p5.48xlarge"
}

@test "names no group where two could be meant" {
  instance i-0b p5.48xlarge
  echo "10.1.9.9" >"$FAKE/addresses"
  put $CONFIG "$RESOURCES"

  on_node $STEP

  same "$(head -1 <<<"$output")" "cluster prod, instance group unknown, instance i-0b, p5.48xlarge"
}

# FIRST_LINE CONFIG
goes_on() {
  instance i-0c g5.8xlarge
  echo 10.9.9.9 >"$FAKE/addresses"
  if [[ -n "$2" ]]; then put $CONFIG "$2"; fi

  on_node $STEP

  same "$status $(head -1 <<<"$output")" "0 $1"
}

bats_test_function --description "a list that does not have this node yet" \
  -- goes_on "cluster prod, instance group unknown, instance i-0c, g5.8xlarge" "$RESOURCES"
bats_test_function --description "no list" \
  -- goes_on "cluster unknown, instance group unknown, instance i-0c, g5.8xlarge" ""
bats_test_function --description "a list that is no JSON" \
  -- goes_on "cluster unknown, instance group unknown, instance i-0c, g5.8xlarge" "{"
bats_test_function --description "a list of another form" \
  -- goes_on "cluster unknown, instance group unknown, instance i-0c, g5.8xlarge" '{"Cluster": "prod"}'

@test "goes on where nothing can be read" {
  rm "$NODE/etc/os-release"
  put $CONFIG "$RESOURCES"
  NODE_ENV+=(FAKE_FAIL="1 ")

  on_node $STEP

  same "$status $output" "0 cluster prod, instance group unknown, instance unknown, unknown
unknown system, kernel unknown, containerd unknown, Lustre client none
NVIDIA GPUs: 0, EFA devices: 0
these scripts are written for Amazon Linux 2023 and 2, and this is neither"
}

@test "says that it is not written for another system" {
  put /etc/os-release $'ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n'

  on_node $STEP

  same "$status $(tail -1 <<<"$output")" "0 these scripts are written for Amazon Linux 2023 and 2, and this is neither"
}
