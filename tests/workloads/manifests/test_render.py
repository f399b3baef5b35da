"""Every kind has its builder, and what comes out can be sent to a cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperpod_cdk.catalog import scheduling
from hyperpod_cdk.workloads.job import KINDS, TRAINING, Job, Kind
from hyperpod_cdk.workloads.manifests.render import BUILDERS, render, to_yaml
from tests.workloads.groups import TYPES, environment
from tests.workloads.schemas import check

TYPE_OF: dict[Kind, str] = {"neuron-info": "ml.trn1.32xlarge", "nccom": "ml.trn2.48xlarge"}


def rendered(kind: Kind, **fields: Any) -> tuple[dict[str, Any], ...]:
    training = {"name": "train", "image": "registry.example.com/i:1", "command": ["train.py"]}
    job = {"kind": kind, "group": "work", **(training if kind in TRAINING else {}), **fields}
    return render(environment(TYPE_OF.get(kind, "ml.p5.48xlarge")), Job.model_validate(job))


def test_every_kind_has_a_builder() -> None:
    assert tuple(BUILDERS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_taken_by_an_api_server_and_stays_the_same(kind: Kind) -> None:
    manifests = rendered(kind)
    check(*manifests)
    assert to_yaml(manifests) == to_yaml(rendered(kind))


@given(instance_type=st.sampled_from(TYPES), kind=st.sampled_from(KINDS))
def test_every_pod_is_in_the_queue_and_only_those_that_work_have_devices(instance_type: str, kind: Kind) -> None:
    about = environment(instance_type)
    fields = {"kind": kind, "group": "work", "name": "j", "image": "i:1", "command": ["c"], "team": "research"}
    for manifest in render(about, Job.model_validate(fields)):
        templates = list(_templates(manifest["spec"]))
        assert templates
        for labelled in (manifest, *templates):
            assert labelled["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "hyperpod-ns-research-localqueue"
        for each in templates:
            (container, *_) = each["spec"]["containers"]
            requests, limits = container["resources"]["requests"], container["resources"].get("limits", {})
            devices = {key: value for key, value in requests.items() if key not in ("cpu", "memory")}
            assert {key: value for key, value in limits.items() if key not in ("cpu", "memory")} == devices
            # what no cluster queue covers is never admitted
            assert all(scheduling.is_in_quotas(name) for name in requests)
            if each["metadata"]["labels"].get("app.kubernetes.io/component") == "launcher":
                assert devices == {}
                assert "podAntiAffinity" not in each["spec"]["affinity"]


def _templates(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "containers" in value.get("spec", {}):
            yield value
        else:
            yield from (found for item in value.values() for found in _templates(item))
    elif isinstance(value, list):
        yield from (found for item in value for found in _templates(item))


def test_the_scripts_are_clean_shell(tmp_path: Path, project: Path) -> None:
    for kind in ("efa-info", "nccl", "dcgm", "neuron-info", "nccom"):
        for pairs in (False, True) if kind == "nccl" else (False,):
            for number, script in enumerate(_scripts(rendered(kind, measure={"pairs": pairs}))):
                (tmp_path / f"{kind}-{pairs}-{number}.bash").write_text(script, encoding="utf-8")
    files = sorted(str(file) for file in tmp_path.iterdir())
    assert len(files) == 9
    found = subprocess.run(
        [project / ".venv" / "bin" / "shellcheck", "--shell=bash", *files],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.stdout == ""
    assert found.returncode == 0


def _scripts(value: Any) -> list[str]:
    if isinstance(value, dict):
        command = value.get("command")
        own = [command[2]] if isinstance(command, list) and command[:2] == ["/bin/bash", "-c"] else []
        return own + [script for item in value.values() for script in _scripts(item)]
    return [script for item in value for script in _scripts(item)] if isinstance(value, list | tuple) else []
