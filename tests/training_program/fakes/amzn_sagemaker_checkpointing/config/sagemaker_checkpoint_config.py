"""The settings that the library takes, as its version 1.1.3 has them."""

from __future__ import annotations

import logging
from dataclasses import dataclass


@dataclass
class SageMakerCheckpointConfig:
    namespace: str
    world_size: int
    disk_tier_base_path: str = ""
    s3_tier_base_path: str = ""
    save_to_s3: bool = False
    save_to_disk: bool = False
    logger: logging.Logger | None = None
