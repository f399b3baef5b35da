"""What lies in the folder of checkpoints may be unfinished or damaged; what is whole is used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from launching import STEPS, Ended, ran


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A folder with the checkpoints of steps 8, 12 and 16 by two workers, and their run."""
    folder = tmp_path_factory.mktemp("written")
    ended = ran(2, ["--checkpoints", folder / "checkpoints", "--steps", "16"], folder)
    assert ended.codes == [0, 0], ended.logs
    return folder / "checkpoints", ended


@pytest.fixture
def folder(written: tuple[Path, Ended], tmp_path: Path) -> Path:
    """A copy of those, to be damaged."""
    return Path(shutil.copytree(written[0], tmp_path / "checkpoints"))


def test_the_newest_few_are_kept(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["step-0000000008", "step-0000000012", "step-0000000016"]
    assert sorted(json.loads((folder / "step-0000000016" / "checksums.json").read_bytes())) == [
        ".metadata",
        "__0_0.distcp",
        "__1_0.distcp",
    ]


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp", "__1_0.distcp"])
def test_a_changed_byte_is_noticed_and_the_checkpoint_before_is_used(name: str, folder: Path, tmp_path: Path) -> None:
    file = folder / "step-0000000016" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    ended = ran(1, ["--checkpoints", folder], tmp_path)
    assert ended.codes == [0], ended.log
    assert f"passing over step 16, which is damaged: {name} is not what was written" in ended.log
    assert "fsdp on 1 workers from step 12" in ended.log
    # and the damaged one was written anew
    again = ran(1, ["--checkpoints", folder], tmp_path)
    assert f"from step {STEPS} to {STEPS}" in again.log
    assert "passing over" not in again.log


def test_unfinished_truncated_and_lost_files_are_passed_over(
    folder: Path, written: tuple[Path, Ended], tmp_path: Path
) -> None:
    for step in (20, 24, 28):
        shutil.copytree(folder / "step-0000000016", folder / f"step-{step:010d}")
    (folder / "step-0000000028" / "checksums.json").unlink()
    (folder / "step-0000000024" / "__1_0.distcp").unlink()
    with (folder / "step-0000000020" / "__0_0.distcp").open("r+b") as file:
        file.truncate(100)
    (folder / "step-0000000016" / "checksums.json").write_text("{")
    ended = ran(2, ["--checkpoints", folder], tmp_path)
    assert ended.codes == [0, 0], ended.logs
    assert "passing over step 28, which was never finished" in ended.log
    assert "passing over step 24, which is damaged: [Errno 2] No such file or directory" in ended.log
    assert "passing over step 20, which is damaged: __0_0.distcp is not what was written" in ended.log
    assert "passing over step 16, which is damaged: Expecting property name" in ended.log
    assert "fsdp on 2 workers from step 12" in ended.log
    # two workers as before: to the last digit
    losses = ended.curve()
    assert {step: losses[step] for step in range(13, 17)} == {
        step: loss for step, loss in written[1].curve().items() if step > 12
    }


def test_if_every_finished_one_is_damaged_nothing_begins_anew_by_itself(folder: Path, tmp_path: Path) -> None:
    for file in folder.glob("*/__1_0.distcp"):
        file.write_bytes(b"")
    ended = ran(2, ["--checkpoints", folder], tmp_path)
    assert ended.codes == [1, 1]
    assert (
        f"every finished checkpoint in {folder} is damaged (steps 8, 12, 16); remove them to begin anew, or"
        " give another --checkpoints" in ended.log
    )


def test_only_unfinished_ones_do_not_keep_a_run_from_beginning(folder: Path, tmp_path: Path) -> None:
    for file in folder.glob("*/checksums.json"):
        file.unlink()
    ended = ran(1, ["--checkpoints", folder, "--steps", "4"], tmp_path)
    assert ended.codes == [0], ended.log
    assert "from step 0 to 4" in ended.log


def test_another_run_is_not_gone_on_with(folder: Path, tmp_path: Path) -> None:
    ended = ran(2, ["--checkpoints", folder, "--batch", "12", "--seed", "1"], tmp_path)
    assert ended.codes == [1, 1]
    assert (
        "the checkpoint of step 16 was written with seed 0, batch 10; this run has seed 1, batch 12: set them alike, or"
        " give another place for checkpoints" in ended.log
    )


def test_a_folder_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    place = tmp_path / "checkpoints"
    place.mkdir()
    # a file where the checkpoint's folder has to be
    (place / "step-0000000004").write_bytes(b"")
    ended = ran(1, ["--checkpoints", place], tmp_path)
    assert ended.codes == [1]
    assert "step: 4 loss" in ended.log
    assert "step: 9 loss" not in ended.log
