"""The assets of an assembly are found by their destination, and compared file by file."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hyperpod_cdk.templates.assets import differing_files, number_of_files, other_contents, uploads


def folder(top: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, encoding="utf-8")
    return top


def archive(file: Path, members: dict[str, str], *, comment: bytes = b"") -> Path:
    with zipfile.ZipFile(file, "w") as opened:
        for name, text in members.items():
            # the date is the member's own, which two archives of the same files need not share
            opened.writestr(zipfile.ZipInfo(name), text)
        opened.comment = comment
    return file


A, B = {"index.py": "a", "lib/x.py": "x"}, {"index.py": "b", "lib/x.py": "x"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (A, A, []),
        (A, B, ["index.py changes"]),
        (A, {"index.py": "a"}, ["lib/x.py is removed"]),
        ({"index.py": "a"}, A, ["lib/x.py is new"]),
        (A, {"index.py": "bb", "lib/y.py": "x"}, ["index.py changes", "lib/x.py is removed", "lib/y.py is new"]),
    ],
)
def test_files_that_differ(tmp_path: Path, old: dict[str, str], new: dict[str, str], said: list[str]) -> None:
    assert differing_files(folder(tmp_path / "a", old), folder(tmp_path / "b", new)) == said
    assert differing_files(archive(tmp_path / "a.zip", old), archive(tmp_path / "b.zip", new)) == said


def test_files_of_one_size_and_time_may_differ(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "a", A), folder(tmp_path / "b", B)
    for each in (old, new):
        os.utime(each / "index.py", (0, 0))
    assert differing_files(old, new) == ["index.py changes"]


def test_what_a_link_leads_to_is_part_of_it(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "a", A), folder(tmp_path / "b", A)
    for top, target in ((old, "index.py"), (new, "lib/x.py")):
        (top / "link").symlink_to(target)
        (top / "loop").symlink_to(".")
    assert differing_files(old, new) == ["link changes"]


def test_one_file_is_it_and_so_is_an_archive_that_no_member_distinguishes(tmp_path: Path) -> None:
    one, other = folder(tmp_path, {"a.py": "1", "b.py": "2"}) / "a.py", tmp_path / "b.py"
    assert differing_files(one, one) == []
    assert differing_files(one, other) == ["it changes"]
    same = archive(tmp_path / "a.zip", A), archive(tmp_path / "b.zip", A, comment=b"x")
    assert differing_files(*same) == ["it changes"]
    broken = folder(tmp_path, {"c.zip": "no archive"}) / "c.zip"
    assert differing_files(broken, same[0]) == ["it is removed", "index.py is new", "lib/x.py is new"]
    assert [number_of_files(each) for each in (one, same[0], broken)] == [1, 2, 1]


def test_uploads_and_images_by_the_place_where_they_go(tmp_path: Path) -> None:
    manifest: dict[str, Any] = {
        "files": {
            "out": {"source": {"path": "../../x"}, "destinations": {"it": {"bucketName": "b", "objectKey": "out"}}},
            "a": {"source": {"path": "asset.a"}, "destinations": {"it": {"bucketName": "b", "objectKey": "k/a.zip"}}},
        },
        "dockerImages": {
            "i": {
                "source": {"directory": "asset.i", "dockerFile": "Other"},
                "destinations": {"it": {"repositoryName": "r", "imageTag": "t"}},
            },
            "j": {
                "source": {"directory": "asset.j"},
                "destinations": {"it": {"repositoryName": "r", "imageTag": "u"}},
            },
        },
    }
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    (top / "inner" / "dev.assets.json").write_text(json.dumps(manifest).replace("asset.", "../asset."))
    (top / "half.assets.json").write_text("{")

    # neither what lies outside of the assembly nor a manifest that is half-written
    found = uploads(top)

    assert {place: (each.name, each.path.name, each.dockerfile) for place, each in found.items()} == {
        "s3://b/k/a.zip": ("k/a.zip", "asset.a", None),
        "r:t": ("t", "asset.i", "Other"),
        "r:u": ("u", "asset.j", "Dockerfile"),
    }


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ({"index.py": b"a", "lib/x.py": b"x"}, []),
        ({"index.py": b"b", "lib/x.py": b"x"}, ["index.py changes"]),
        ({"index.py": b"a\n", "lib/x.py": b"x"}, ["index.py changes"]),
        ({"index.py": b"a"}, ["lib/x.py is new"]),
        ({"index.py": b"a", "lib/x.py": b"x", "": b""}, ["it is removed"]),
    ],
)
def test_files_that_are_known_by_their_content(tmp_path: Path, old: dict[str, bytes], said: list[str]) -> None:
    assert differing_files(old, folder(tmp_path / "a", A)) == said
    assert differing_files(old, archive(tmp_path / "a.zip", A)) == said


def test_a_file_and_the_target_of_a_link_that_are_known_by_their_content(tmp_path: Path) -> None:
    new = folder(tmp_path / "a", {"index.py": "a"})
    (new / "link").symlink_to("index.py")
    (new / "loose").symlink_to("gone")
    assert differing_files({"index.py": b"a", "link": b"a"}, new) == ["loose is new"]
    assert differing_files({"index.py": b"a", "link": b"b", "loose": b""}, new) == ["link changes", "loose changes"]
    assert differing_files({"": b"a"}, new / "index.py") == []
    assert differing_files({"": b"b"}, new / "index.py") == ["it changes"]


def test_places_with_other_content(tmp_path: Path) -> None:
    def assembly(name: str, contents: dict[str, dict[str, str]], *links: str) -> Path:
        top = tmp_path / name
        for place, files in contents.items():
            folder(top / place, files)
        for link in links:
            (top / link).symlink_to("nowhere")
        places = [*contents, *links]
        manifest = {
            "files": {
                place: {"source": {"path": place}, "destinations": {"it": {"bucketName": "b", "objectKey": place}}}
                for place in places
            }
        }
        (top / "dev.assets.json").write_text(json.dumps(manifest), encoding="utf-8")
        return top

    old = assembly("old", {"same": A, "other": A, "more": A, "gone": A}, "loose")
    new = assembly("new", {"same": A, "other": B, "more": {**A, "z": ""}, "new": A}, "loose")
    assert other_contents(old, new) == ["s3://b/more", "s3://b/other"]
    assert other_contents(new, old) == ["s3://b/more", "s3://b/other"]
    # a link without a target is not what a file is
    (old / "loose").unlink()
    (old / "loose").write_text("", encoding="utf-8")
    assert other_contents(old, new) == ["s3://b/loose", "s3://b/more", "s3://b/other"]
