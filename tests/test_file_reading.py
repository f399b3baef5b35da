"""Files that users specify are read in one step and within a limit; code that reads otherwise has a reason."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hyperpod_cdk.file_reading import NoFileError, TooLargeError, open_log, read_bytes, read_text, reason_of, resolved
from hyperpod_cdk.yaml_reading import MAX_FLOW_DEPTH, MAX_MERGED, ShallowLoader, read_inner

SOURCES = Path(__file__).parents[1] / "constructs" / "hyperpod_cdk"

READ_OTHERWISE = {
    "_cli/project.py": "what ships",
    "_cli/words.py": "what ships: the modules of checks",
    "catalog/_data.py": "what ships",
    "checks/lifecycle_scripts.py": "a folder's regular files, whose sizes are looked at first",
    "eks/charts.py": "what has just been fetched, by its digest",
    "eks/dependencies.py": "what ships, or was pulled and compared with its digest",
    "hyperpod/lifecycle.py": "steps whose sizes were looked at first",
    "packaged_node.py": "what ships",
    "review/changes/causes.py": "what ships, and a folder's regular files",
    "review/isolated_app.py": "the system's own",
    "review/isolation.py": "the system's own",
    "review/nag.py": "what another process of this command has written",
    "review/sources.py": "the lock of the charts, a regular file",
    "review/standing.py": "an assembly's regular files",
    "script_files.py": "a folder's regular files, whose sizes are looked at first",
    "templates/cdk_plugin.py": "what CDK has just written",
    "templates/deployment.py": "an assembly's regular files",
    "templates/template_yaml.py": "what this command has written",
    "transitions/between.py": "an assembly that this command has just copied",
    "workloads/image.py": "what ships",
    "workloads/program.py": "a folder's regular files, whose sizes are looked at first",
}
"""Modules that read files by another way, and why."""


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_bytes(file, most=5) == b"12345"
    assert read_text(file, most=5) == "12345"
    with pytest.raises(TooLargeError, match="it has 5 bytes or more, and at most 4 are read") as caught:
        read_bytes(file, most=4)
    assert caught.value.size == 5
    with open_log(file, most=5) as stream:
        assert stream.read() == b"12345"
    with pytest.raises(TooLargeError):
        open_log(file, most=4)


@pytest.mark.parametrize("reads", [read_bytes, open_log])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, reads: Callable[..., object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(NoFileError, match="it is no regular file"):
            reads(path, most=10)
    with pytest.raises(IsADirectoryError):
        reads(tmp_path, most=10)
    with pytest.raises(FileNotFoundError):
        reads(tmp_path / "missing", most=10)
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 5 << 30)
    with pytest.raises(TooLargeError):
        reads(tmp_path / "sparse", most=10)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux has files that tell no size")
def test_a_file_that_states_no_size_is_read_up_to_the_limit() -> None:
    assert read_bytes(Path("/proc/self/status"), most=1_000_000).startswith(b"Name:")
    with pytest.raises(TooLargeError):
        read_bytes(Path("/proc/self/status"), most=20)


def test_a_pipe_that_a_shell_hands_over_is_read() -> None:
    read, write = os.pipe()

    def says() -> None:
        os.write(write, b"a log\n")
        os.close(write)

    threading.Thread(target=says).start()
    try:
        with open_log(Path(f"/dev/fd/{read}"), most=10) as stream:
            assert stream.read() == b"a log\n"
    finally:
        os.close(read)


def test_links_in_a_circle_lead_nowhere_and_raise_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    assert resolved(tmp_path / "one") in (tmp_path / "one", tmp_path / "other")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read_bytes(resolved(tmp_path / "one"), most=10)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert resolved(tmp_path / "link") == tmp_path / "file"


def test_nobody_resolves_by_what_raises_for_links_in_a_circle() -> None:
    """Before Python 3.13 ``Path.resolve()`` raises RuntimeError, which nobody expects of a file that somebody names."""
    folders = (SOURCES, SOURCES.parents[1] / "rehearsal" / "hyperpod_cdk_rehearsal")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    assert len(files) > 500
    assert [file for file in files if re.search(r"\.resolve\((strict=\w+)?\)", file.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RecursionError("maximum recursion depth exceeded while decoding a JSON array"), "nested too deeply"),
        # Python 3.14
        (RecursionError("Stack overflow (used 8156 kB) while decoding a JSON array"), "nested too deeply"),
        (ValueError("NaN is not a JSON number"), "NaN is not a JSON number"),
    ],
)
def test_what_a_parser_says_does_not_depend_on_the_version_of_python(error: Exception, says: str) -> None:
    assert reason_of(error) == says


def test_what_we_refuse_for_its_depth_says_how_deep_it_may_be() -> None:
    with pytest.raises(RecursionError) as refused:
        yaml.load("[" * (MAX_FLOW_DEPTH + 1), ShallowLoader)  # noqa: S506 - a safe loader
    assert reason_of(refused.value) == "brackets nest more than 100 deep"


def merged(levels: int) -> str:
    """YAML of a few lines whose merge keys bring the last mapping three keys times nine for each level."""
    lines = ["a: &a {k1: 1, k2: 2, k3: 3}"]
    for n in range(levels):
        nine = ",".join(["*" + chr(97 + n)] * 9)
        lines.append(f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{nine}]}}")
    return "\n".join(lines) + "\n"


def aliased(levels: int) -> str:
    """YAML of a few lines whose aliases stand for ten to the power of ``levels`` values."""
    lines = [f"a0: &a0 [{','.join('x' * 10)}]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_merge_keys_that_multiply_end() -> None:
    assert yaml.load(merged(3), ShallowLoader)["d"] == {"k1": 1, "k2": 2, "k3": 3}  # noqa: S506 - a safe loader
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        yaml.load(merged(20), ShallowLoader)  # noqa: S506 - a safe loader
    assert refused.value.problem == "merge keys bring this mapping more than 10,000 keys"
    assert refused.value.problem_mark is not None
    assert refused.value.problem_mark.line == 4


def test_a_mapping_of_many_keys_is_none_that_was_merged() -> None:
    keys = "".join(f"k{n}: 1\n" for n in range(MAX_MERGED + 1))
    assert len(yaml.load(keys, ShallowLoader)) == MAX_MERGED + 1  # noqa: S506 - a safe loader


@pytest.mark.parametrize("written", [aliased(6), aliased(30), merged(20), "a: &a [*a]", "a: ["])
def test_a_text_within_a_template_has_an_end(written: str) -> None:
    with pytest.raises(yaml.YAMLError):
        read_inner(written)


def test_a_text_within_a_template() -> None:
    # ten thousand of them, and what the four below stand for
    assert len(read_inner(aliased(4))["a3"]) == 10
    assert read_inner("- rolearn: here\n") == [{"rolearn": "here"}]


def test_no_other_module_reads_what_users_name() -> None:
    found = set()
    for path in SOURCES.rglob("*.py"):
        name = path.relative_to(SOURCES).as_posix()
        if name.startswith("handlers/"):
            continue
        if re.search(r"\.read_(text|bytes)\(", path.read_text(encoding="utf-8")):
            found.add(name)
    assert found == set(READ_OTHERWISE)
