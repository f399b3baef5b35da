"""The configuration that operators and libraries read."""

from __future__ import annotations

import pytest

from hyperpod_cdk.catalog import instance_types, training


@pytest.mark.parametrize(
    ("kind", "accelerators", "expected"),
    [
        ("nvidia-h100", 8, 8),
        ("nvidia-h100", 1, 1),
        ("aws-trainium", 16, 32),
        ("aws-trainium2", 16, 64),
        (None, 0, 1),
        ("nvidia-h100", 0, 1),
    ],
)
def test_processes(kind: str | None, accelerators: int, expected: int) -> None:
    assert training.processes(kind, accelerators) == expected


def test_the_cores_of_every_neuron_device_are_known() -> None:
    rows = [row for name in instance_types.names() if (row := instance_types.get(name)) is not None and row.is_neuron]
    assert {row.name for row in rows if training.processes(row.accelerator_kind, 1) == 1} == set()
    assert len(rows) > 3


def test_auto_resume_is_text() -> None:
    assert training.auto_resume(3) == {
        "sagemaker.amazonaws.com/enable-job-auto-resume": "true",
        "sagemaker.amazonaws.com/job-max-retry-count": "3",
    }


@pytest.mark.parametrize(
    ("seconds", "variables"),
    [
        (29, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "29"}),
        (30, {}),
        (31, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "31"}),
    ],
)
def test_only_another_time_to_shut_down_needs_a_variable(seconds: int, variables: dict[str, str]) -> None:
    assert training.shutdown_variables(seconds) == variables


def test_every_option_is_named_once_and_either_offered_or_explained() -> None:
    options = [row.option for row in training.HYP_PARAMETERS]
    assert len(options) == len(set(options)) == 39
    assert all(option.startswith("--") for option in options)
    assert {row.option for row in training.HYP_PARAMETERS if not row.keys} == {
        row.option for row in training.HYP_PARAMETERS if row.note.startswith("not offered: ")
    }
    assert all(bool(row.keys) == bool(row.manifest) for row in training.HYP_PARAMETERS)


def test_a_program_is_told_of_another_size() -> None:
    assert training.elastic_variables() == {"HYPERPOD_SIGNAL_COORDINATION": "distributed"}
