"""Which services an environment in a closed network reaches through interface endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperpod_cdk.catalog import network as catalog

if TYPE_CHECKING:
    from hyperpod_cdk.config.environment import Environment


def interface_endpoints(environment: Environment) -> tuple[str, ...]:
    """Return the services of an environment's interface endpoints by the ends of their names, sorted.

    Empty unless the network is closed. A disabled feature adds none; ``network.endpoints.additional`` adds more.
    """
    network = environment.network
    if not network.is_closed:
        return ()
    additional = () if network.endpoints is None else network.endpoints.additional
    return tuple(sorted({*needed_endpoints(environment), *additional}))


def needed_endpoints(environment: Environment) -> tuple[str, ...]:
    """Return the services that the environment itself calls from a closed network, sorted."""
    features = {
        "lustre_claims": any(system.claim is not None for system in environment.storage.lustre),
        "inference": environment.operators.inference.enabled,
        "observability": environment.operators.observability.enabled,
        "reward_functions": any(group.reward_functions for group in environment.hyperpod.restricted_instance_groups),
    }
    return catalog.endpoint_services([name for name, is_on in features.items() if is_on])
