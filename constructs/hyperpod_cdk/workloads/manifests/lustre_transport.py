"""Lets a pod log whether it reaches its mounted file systems over EFA."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_cdk.workloads.manifests.launcher import NODE_VARIABLE
from hyperpod_cdk.workloads.plan import Plan

# Kernel modules are visible in every container. LNet's driver for EFA counts at least one user while one of its
# interfaces is up (kefalnd_base_startup in Lustre's lnet/klnds/efalnd/efalnd.c); not verified on a HyperPod node.
# Kubernetes replaces $(NAME) and $$ in arguments, so the script contains neither.
_LOOK = f"""\
lustre=unknown
users=0
if [ -d /sys/module/lustre ]; then lustre=tcp; fi
if [ -r /sys/module/kefalnd/refcnt ]; then read -r users </sys/module/kefalnd/refcnt; fi
if [ "$users" -gt 0 ]; then lustre=efa; fi
echo "# hyperpod-cdk: lustre=$lustre of=${{{NODE_VARIABLE}:-${{HOSTNAME:-}}}}"
exec "$@"
"""


def telling(plan: Plan, command: Sequence[str]) -> list[str]:
    """Return ``command``, preceded by a check of the transport if the job's group and one of its claims have EFA.

    The program replaces the shell, so that it receives the arguments and signals; the image needs ``/bin/sh``.
    """
    if not command or not _goes_over_efa(plan):
        return list(command)
    return ["/bin/sh", "-c", _LOOK, "sh", *command]


def _goes_over_efa(plan: Plan) -> bool:
    if not all(row.fsx_efa_client for row in plan.shape.rows):
        return False
    mounted = {volume.claim for volume in plan.claims}
    return any(
        system.efa
        and system.claim is not None
        and plan.namespace in system.claim.namespaces
        and system.resolved_claim_name in mounted
        and system.availability_zone_id == plan.group.availability_zone_id
        for system in plan.environment.storage.lustre
    )
