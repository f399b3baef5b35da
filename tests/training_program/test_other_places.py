"""Checkpoints in S3 and in the nodes' memory, by libraries that are replaced by ones over folders."""

from __future__ import annotations

from pathlib import Path

from launching import STEPS, ran
from test_curve import assert_alike


def test_s3_on_other_numbers_of_workers(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    bucket = tmp_path / "bucket"
    (bucket / "team").mkdir(parents=True)
    other = bucket / "team" / "notes" / "step-0000000099" / ".metadata"
    other.parent.mkdir(parents=True)
    other.touch()
    variables = {"FAKE_S3": str(tmp_path), "CHECKPOINT_S3_URI": "s3://bucket/team/run/"}
    first = ran(2, ["--steps", "13", "--keep", "2"], tmp_path, variables=variables)
    assert first.codes == [0, 0], first.logs
    run = bucket / "team" / "run"
    files = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    assert files == [
        f"step-00000000{step}/{file}" for step in (12, 13) for file in (".metadata", "__0_0.distcp", "__1_0.distcp")
    ]
    # killed while it wrote: there is no metadata yet
    (run / "step-0000000013" / ".metadata").unlink()
    second = ran(3, [], tmp_path, variables=variables)
    assert second.codes == [0, 0, 0], second.logs
    assert "passing over step 13, which was never finished" in second.log
    assert f"fsdp on 3 workers from step 12 to {STEPS}" in second.log
    assert_alike(first.curve() | second.curve(), undisturbed)
    assert other.exists()


def test_tiered_checkpoints_go_on_and_now_and_then_to_s3(tmp_path: Path, undisturbed: dict[int, float]) -> None:
    variables = {
        "FAKE_MEMORY": str(tmp_path),
        "TIERED_CHECKPOINT_NAMESPACE": "team-run",
        "CHECKPOINT_S3_URI": "s3://bucket/run",
    }
    often = ["--tiered-s3-every", "8"]
    first = ran(4, [*often, "--steps", "10"], tmp_path, variables=variables)
    assert first.codes == [0, 0, 0, 0], first.logs
    assert [line for line in first.log.splitlines() if " goes to " in line] == [
        "step 4 goes to memory",
        "step 8 goes to memory and s3://bucket/run",
        "step 10 goes to memory",
    ]
    second = ran(4, often, tmp_path, variables=variables)
    assert f"fsdp on 4 workers from step 10 to {STEPS}" in second.log
    # the same number of workers: equal to the last digit
    assert first.curve() | second.curve() == undisturbed
