#!/usr/bin/env bash
# Waits for the disk that takes containerd's and kubelet's data; a node without one goes on without.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

bash "$here/../node/hyperpod-data-disk" wait
