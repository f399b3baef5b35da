"""The parts of the training program, each by itself."""

from __future__ import annotations

import dataclasses
import signal
import sys
import threading
import types
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]  # public, though not in its __all__

import options
from data import Bytes, MadeUp, share
from events import Asked, Events
from launching import ran
from workers import agreed_name


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 10, 16])
def test_each_sample_is_taken_once_and_parts_are_equally_long(workers: int) -> None:
    parts = [share(40, 10, rank=rank, workers=workers) for rank in range(workers)]
    assert sorted(index for part in parts for index, weight in part if weight == 1.0) == list(range(40, 50))
    assert {len(part) for part in parts} == {-(-10 // workers)}
    assert {weight for part in parts for _, weight in part} <= {0.0, 1.0}


def test_made_up_samples_depend_on_seed_and_index_only() -> None:
    one, other = MadeUp(context=16, seed=1), MadeUp(context=16, seed=1)
    assert torch.equal(one.sample(7), other.sample(7))
    assert not torch.equal(one.sample(7), one.sample(8))
    assert not torch.equal(one.sample(7), MadeUp(context=16, seed=2).sample(7))
    assert one.sample(0).shape == (17,)


def test_windows_of_a_file_are_taken_once_per_epoch(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(bytes(range(50)))
    samples = Bytes(file, context=7, seed=0)
    epochs = [[samples.sample(index).tolist() for index in range(start, start + 7)] for start in (0, 7)]
    windows = [list(range(start, start + 8)) for start in range(0, 49, 7)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == windows
    assert epochs[0] != epochs[1]


def test_a_file_that_is_too_short(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(b"short")
    with pytest.raises(ValueError, match=r"must have at least 9 bytes \(--context and one\), got 5$"):
        Bytes(file, context=8, seed=0)
    ended = ran(1, ["--data", file], tmp_path)
    assert ended.codes == [1]
    assert ended.log.endswith(f"[ERROR] train: {file} must have at least 33 bytes (--context and one), got 5\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--width 30 --heads 4", "--width must be a multiple of --heads, got 30 and 4"),
        ("--steps 0", "argument --steps: must be 1 or more, got 0"),
        ("--data /nowhere", "--data must be a file, got /nowhere"),
        (
            "--tiered llama --checkpoints /data",
            "checkpoints go to one place: give --checkpoints (or CHECKPOINT_PATH) or --tiered, not both",
        ),
        (
            "--s3 s3://bucket --checkpoints /data",
            "checkpoints go to one place: give --checkpoints (or CHECKPOINT_PATH) or --s3, not both",
        ),
        ("--s3 bucket", "--s3 must be an address that begins with s3://, got bucket"),
        (
            "--tiered llama --s3 s3://bucket --tiered-s3-every 120",
            "--tiered-s3-every must be a multiple of --checkpoint-every (50), got 120",
        ),
    ],
)
def test_wrong_options(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options.read(arguments.split(), environment={})
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].partition("error: ")[2] == message


def test_the_variables_of_a_manifest_are_read_and_the_command_line_wins() -> None:
    variables = {"CHECKPOINT_S3_URI": "s3://bucket/run", "TIERED_CHECKPOINT_NAMESPACE": "team-run"}
    read = options.read([], environment=variables)
    assert (read.checkpoints, read.s3, read.tiered) == (None, "s3://bucket/run", "team-run")
    assert options.read(["--s3", "s3://other"], environment=variables).s3 == "s3://other"
    assert options.read([], environment={"CHECKPOINT_PATH": "/data"}).checkpoints == Path("/data")


def test_what_a_curve_depends_on() -> None:
    read = options.read([], environment={})
    for free in ({"steps": 5}, {"micro_batch": 1}, {"parallelism": "ddp"}, {"keep": 9}, {"checkpoint_every": 7}):
        assert dataclasses.replace(read, **free).curve() == read.curve()
    for fixed in ({"batch": 5}, {"seed": 1}, {"learning_rate": 0.5}, {"width": 8}, {"data": Path(__file__)}):
        assert dataclasses.replace(read, **fixed).curve() != read.curve()


def agree(store: HashStore, count: int) -> list[str]:
    """Let workers that are threads agree on a name."""
    names = [""] * count

    def work(rank: int) -> None:
        names[rank] = agreed_name(store, rank=rank, count=count, patience=60)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in reversed(range(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return names


def test_workers_agree_on_a_name_that_those_before_them_did_not_have() -> None:
    store = HashStore()
    seen: set[str] = set()
    # fewer, more, as many: what is left in the store is of other workers each time
    for count in (4, 4, 2, 3, 3, 1, 4):
        names = set(agree(store, count))
        assert len(names) == 1
        assert not names & seen
        seen |= names


def test_a_worker_that_never_comes_is_not_waited_for_forever() -> None:
    with pytest.raises(TimeoutError, match=r"^worker 0 waited 0 seconds for all 2 workers to begin$"):
        agreed_name(HashStore(), rank=0, count=2, patience=0.1)
    store = HashStore()
    store.set("called", '["gone", "somebody"]')
    with pytest.raises(TimeoutError, match=r"^worker 1 waited 0 seconds"):
        agreed_name(store, rank=1, count=2, patience=0.1)


@pytest.fixture
def _handlers() -> object:
    numbers = (signal.SIGTERM, signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers")
def test_signals_are_remembered_and_a_second_sigterm_is_not_held_up() -> None:
    events = Events()
    assert events.asked() == Asked(to_terminate=False, to_resize=False)
    signal.raise_signal(signal.SIGUSR1)
    assert events.asked() == Asked(to_terminate=False, to_resize=True)
    signal.raise_signal(signal.SIGTERM)
    assert events.asked() == Asked(to_terminate=True, to_resize=True)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("_handlers")
def test_the_elastic_agents_library_is_asked_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [False, True, True]
    received: list[int] = []
    library = types.ModuleType("hyperpod_elastic_agent.elastic_event_handler")
    library.elastic_event_detected = lambda: answers.pop(0)  # type: ignore[attr-defined]  # a module made here
    signal.signal(signal.SIGUSR1, lambda number, _: received.append(number))  # as the library does when it is imported
    monkeypatch.setitem(sys.modules, "hyperpod_elastic_agent", types.ModuleType("hyperpod_elastic_agent"))
    monkeypatch.setitem(sys.modules, "hyperpod_elastic_agent.elastic_event_handler", library)
    events = Events()
    assert [events.asked().to_resize for _ in range(2)] == [False, True]
    signal.raise_signal(signal.SIGUSR1)
    # the answer is a collective of all workers: it is asked for even where the signal already said enough
    assert events.asked().to_resize
    assert answers == []
    assert received == [signal.SIGUSR1]


def test_under_hyperpods_agent_every_worker_says_its_loss(tmp_path: Path) -> None:
    few = ["--steps", "2"]
    assert [bool(log) for log in ran(2, few, tmp_path).logs] == [True, False]
    agent = {"HYPERPOD_ELASTICAGENT_SOCKET_SERVER_PATH": "/tmp/agent.sock"}  # noqa: S108 - only that it is set counts
    assert ["step: 2 loss: " in log for log in ran(2, few, tmp_path, variables=agent).logs] == [True, True]


def test_a_loss_that_is_no_number_ends_the_run_without_a_checkpoint(tmp_path: Path) -> None:
    place = tmp_path / "checkpoints"
    ended = ran(1, ["--learning-rate", "1e30", "--checkpoints", place, "--checkpoint-every", "1000"], tmp_path)
    assert ended.codes == [1]
    assert "which no checkpoint gets; try a lower --learning-rate" in ended.log
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tiered", "run"], "--tiered needs the package amzn-sagemaker-checkpointing"),
        (["--s3", "s3://bucket"], "checkpoints in S3 need the packages s3torchconnector[dcp] and boto3"),
    ],
)
def test_a_library_that_is_missing_in_the_image(arguments: list[str], message: str, tmp_path: Path) -> None:
    ended = ran(1, arguments, tmp_path)
    assert ended.codes == [1]
    assert message in ended.log
    assert "Traceback" not in ended.log
