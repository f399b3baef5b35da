"""What AWS refuses, the rehearsal refuses: faults put into the product's own templates, told by text and taken back."""

from __future__ import annotations

import copy
import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from botocore.exceptions import ClientError

from hyperpod_cdk.config import load_environment
from hyperpod_cdk.rehearsal.embedded.account import load_document
from hyperpod_cdk.rehearsal.process import EmbeddedAws
from stacks.app import FEATURE_FLAGS, build
from tests.support.assembly import ENVIRONMENTS, Synthesized, read_assembly

Template = dict[str, Any]
Edit = Callable[[Template], None]
