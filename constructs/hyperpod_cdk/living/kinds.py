"""Every type of resource that is compared with AWS; of all others it is said that they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hyperpod_cdk.living import eks, hyperpod, identity, network, objects, storage, watching
from hyperpod_cdk.living.look import Kind

KINDS: Final[Mapping[str, Kind]] = {
    **hyperpod.KINDS,
    **eks.KINDS,
    **objects.KINDS,
    **storage.KINDS,
    **network.KINDS,
    **identity.KINDS,
    **watching.KINDS,
}
"""How each is compared, by CloudFormation's name of the type."""
