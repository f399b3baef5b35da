"""The tables with ends of support are recent, as long as this repository is maintained."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from hyperpod_cdk.catalog import addons, images, kubernetes

OLDEST = timedelta(days=120)
GIT = shutil.which("git") or "git"
TABLES = {"kubernetes": kubernetes.AS_OF, "addons": addons.AS_OF, "images": images.AS_OF}


def age_problem(name: str, as_of: date, *, on: date) -> str | None:
    """Return a message if a table is too old on a day, or None."""
    if on - as_of <= OLDEST:
        return None
    return (
        f"catalog/data/{name}.json is of {as_of}, {(on - as_of).days} days before {on}, and at most {OLDEST.days} are"
        ' allowed: read the pages that its "sources" name again, correct the rows, and set "as_of" to that day'
    )


def judged_on(project: Path) -> date | None:
    """Return the day by which tables are judged: in a pipeline today, else the day of the commit that is checked out.

    A checkout of an old release is as good as it was; without git nothing tells how old it is.
    """
    if os.environ.get("CI"):
        return datetime.now(UTC).date()
    shown = subprocess.run(
        [GIT, "-C", str(project), "log", "-1", "--format=%cs"], capture_output=True, text=True, check=False
    )
    return date.fromisoformat(shown.stdout.strip()) if shown.returncode == 0 and shown.stdout.strip() else None


@pytest.mark.parametrize("name", TABLES)
def test_no_calendar_is_older_than_120_days(name: str, project: Path) -> None:
    on = judged_on(project)
    if on is None:
        pytest.skip("no git history tells the day of this checkout, and this is no pipeline")
    assert age_problem(name, TABLES[name], on=on) is None


def test_the_120th_day_is_the_last() -> None:
    as_of = date(2026, 11, 20)
    assert age_problem("kubernetes", as_of, on=as_of + timedelta(days=120)) is None
    assert age_problem("kubernetes", as_of, on=as_of + timedelta(days=121)) == (
        "catalog/data/kubernetes.json is of 2026-11-20, 121 days before 2027-03-21, and at most 120 are allowed: read"
        ' the pages that its "sources" name again, correct the rows, and set "as_of" to that day'
    )


def test_a_pipeline_judges_by_the_clock_and_a_checkout_by_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert judged_on(tmp_path) in {datetime.now(UTC).date(), datetime.now(UTC).date() - timedelta(days=1)}
    monkeypatch.delenv("CI")
    assert judged_on(tmp_path) is None
    environment = {**os.environ, "GIT_COMMITTER_DATE": "2026-02-03T12:00:00Z", "GIT_CONFIG_GLOBAL": os.devnull}
    names = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([GIT, "init", "-q", str(tmp_path)], check=True, env=environment)
    commit = [GIT, "-C", str(tmp_path), *names, "commit", "-q", "--allow-empty", "-m", "a"]
    subprocess.run(commit, check=True, env=environment)
    assert judged_on(tmp_path) == date(2026, 2, 3)
