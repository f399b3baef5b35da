#!/usr/bin/env bash
# Shows that the parts of the image fit together. Needs neither a GPU nor EFA, so that the build can run it.
set -euo pipefail

fail() {
  echo "check-image: $*" >&2
  exit 1
}

# libcuda comes with the node's driver, and is not there while the image is built
unresolved() {
  ldd "$1" | awk '/not found/ && $1 !~ /^libcuda\.so/ {print $1}'
}

providers="$(fi_info --list)"
[[ "${providers}" == *efa* ]] || fail "libfabric must have the efa provider, got: ${providers}"

plugin=/usr/lib/libnccl-net.so
[[ -e "${plugin}" ]] || fail "NCCL must find its plugin, ${plugin} is missing"
missing="$(unresolved "${plugin}")"
[[ -z "${missing}" ]] || fail "${plugin} needs the missing library ${missing}; NCCL would use TCP"

mapfile -t copies < <(find / -xdev -name 'libnccl.so.2*' -type f -print)
((${#copies[@]} == 1)) || fail "there must be one NCCL, got ${#copies[@]}: ${copies[*]}"

for program in /opt/nccl-tests/build/*_perf; do
  missing="$(unresolved "${program}")"
  [[ -z "${missing}" ]] || fail "${program} needs the missing library ${missing}"
done

/opt/amazon/openmpi/bin/mpirun --version >/dev/null
/usr/sbin/sshd -t
hyperpodrun --help >/dev/null
python -c 'import amzn_sagemaker_checkpointing, boto3, hyperpod_elastic_agent, s3torchconnector.dcp, torch
assert torch.distributed.is_nccl_available(), "PyTorch must have NCCL"'
echo "check-image: all parts fit"
