#!/usr/bin/env bash
# Prepares a HyperPod node before it joins its EKS cluster: runs every script of steps/, in the order of their names.
#
# HyperPod copies this folder from S3 to a new node and runs this file once, as root. Everything said goes to
# /var/log/provision/provisioning.log too, which HyperPod ships to CloudWatch. The first step that fails ends the run,
# and its exit code is ours; 124 means that a step took too long. Running it again changes nothing.
#
# HYPERPOD_ROOT                 prefix of every path on the node; empty, except in tests
# HYPERPOD_STEP_SECONDS         how long one step may take, 1200 by default
# HYPERPOD_LOG_GRACE_SECONDS    how long a failed run waits before it ends, 60 by default
set -euo pipefail

log_file="${HYPERPOD_ROOT:-}/var/log/provision/provisioning.log"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
step_seconds="${HYPERPOD_STEP_SECONDS:-1200}"
# exported, because bash's own clock knows no other zone
export TZ=UTC

# a log that cannot be written is no reason to fail
say() {
  local line
  line="$(printf '%(%Y-%m-%dT%H:%M:%SZ)T' -1) [on_create] $*"
  echo "$line"
  { echo "$line" >>"$log_file"; } 2>/dev/null || true
}

leave() {
  sync
  # a node that fails is taken away at once; without a pause its last lines never reach CloudWatch
  sleep "${HYPERPOD_LOG_GRACE_SECONDS:-60}"
  exit "$1"
}

mkdir -p "$(dirname "$log_file")"
say "start"
for step in "$here"/steps/*.sh; do
  if [[ ! -f "$step" ]]; then
    say "no script in $here/steps; upload the whole folder, not on_create.sh alone"
    leave 66
  fi
  name="$(basename "$step" .sh)"
  say "$name: start"
  begun="$SECONDS"
  code=0
  # through bash, because S3 keeps no executable bit; a step that hangs would hold a node that is billed
  timeout --kill-after=30 "$step_seconds" bash "$step" 2>&1 | { tee -a "$log_file" || true; } || code=$?
  took=$((SECONDS - begun))
  if ((code == 124 && took >= step_seconds)); then
    say "$name: ended after $step_seconds s, the longest that a step may take"
    leave "$code"
  fi
  if ((code != 0)); then
    say "$name: failed with exit code $code after $took s"
    leave "$code"
  fi
  say "$name: done after $took s"
done
say "done"
