"""Reviews become one comment each, updated in place, on both forges."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PULL = "/repos/acme/platform/issues/7/comments"
MERGE = "/projects/42/merge_requests/7/notes"


@dataclass
class Forge:
    """Both forges' comments, as their APIs list, add and change them; ``asked`` are the requests that changed one."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    broken: int = 0
    address: str = ""

    def add(self, body: str, *, by_person: bool = False) -> None:
        user = {"id": 5 if by_person else 9, "type": "User" if by_person else "Bot"}
        self.comments.append({"id": 100 + len(self.comments), "body": body, "user": user, "author": user})


@pytest.fixture
def forge() -> Iterator[Forge]:
    state = Forge()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/user":
                self._answer({"id": 9})
                return
            _, _, query = self.path.partition("?")
            options = dict(each.split("=") for each in query.split("&"))
            size, page = int(options["per_page"]), int(options["page"])
            self._answer(state.comments[(page - 1) * size : page * size])

        def do_POST(self) -> None:
            state.asked.append(("POST", self.path))
            state.add(self._body())
            self._answer(state.comments[-1])

        def do_PATCH(self) -> None:
            self._update()

        def do_PUT(self) -> None:
            self._update()

        def _update(self) -> None:
            state.asked.append((self.command, self.path))
            (found,) = [each for each in state.comments if str(each["id"]) == self.path.rpartition("/")[2]]
            found["body"] = self._body()
            self._answer(found)

        def _body(self) -> str:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            return str(json.loads(text)["body"])

        def _answer(self, data: object) -> None:
            state.tokens.add(self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN"))
            self.send_response(state.broken or 200)
            self.end_headers()
            self.wfile.write(json.dumps(data).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    file = Path(__file__).parents[2] / ".ci" / "post_review.py"
    spec = importlib.util.spec_from_file_location("post_review", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    import sys  # noqa: PLC0415 - only here

    sys.modules["post_review"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def review(tmp_path: Path) -> Path:
    return written(tmp_path / "prod", "prod")


def written(folder: Path, name: str, *, level: str = "replaced", text: str = "the review") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "report.md").write_text(f"<!-- hyperpod-cdk review: {name} -->\n{text}\n", encoding="utf-8")
    report = {"environment": name, "verdict": {"level": level}}
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return folder


def github(forge: Forge) -> dict[str, str]:
    return {
        "GITHUB_API_URL": forge.address,
        "GITHUB_REPOSITORY": "acme/platform",
        "PULL_REQUEST": "7",
        "GITHUB_TOKEN": "secret",
    }


def gitlab(forge: Forge) -> dict[str, str]:
    return {
        "CI_API_V4_URL": forge.address,
        "CI_PROJECT_ID": "42",
        "CI_MERGE_REQUEST_IID": "7",
        "REVIEW_TOKEN": "secret",
    }


@pytest.mark.parametrize(
    ("variables", "asked", "token"),
    [
        (github, [("POST", PULL), ("PATCH", "/repos/acme/platform/issues/comments/101")], "Bearer secret"),
        (gitlab, [("POST", MERGE), ("PUT", f"{MERGE}/101")], "secret"),
    ],
)
def test_a_review_is_posted_once_and_then_updated(
    *, script: ModuleType, forge: Forge, review: Path, variables: Any, asked: list[tuple[str, str]], token: str
) -> None:
    forge.add("<!-- hyperpod-cdk review: prod -->\na person's comment that pretends to be a review", by_person=True)
    target = script.forge(variables(forge))

    assert script.post([review], target) == ["prod: posted"]
    written(review, "prod", text="the second review")
    assert script.post([review], target) == ["prod: updated"]

    assert forge.asked == asked
    assert [each["body"] for each in forge.comments[1:]] == ["<!-- hyperpod-cdk review: prod -->\nthe second review\n"]
    assert forge.tokens == {token}


def test_the_comment_is_found_behind_many_others(script: ModuleType, forge: Forge, review: Path) -> None:
    for number in range(250):
        forge.add(f"comment {number}")
    forge.add("<!-- hyperpod-cdk review: prod -->\r\nold")

    assert script.post([review], script.forge(github(forge))) == ["prod: updated"]
    assert len(forge.comments) == 251


def test_each_environment_has_a_comment_of_its_own(script: ModuleType, forge: Forge, tmp_path: Path) -> None:
    folders = [written(tmp_path / name, name) for name in ("prod", "prod-eu")]

    assert script.post(folders, script.forge(github(forge))) == ["prod: posted", "prod-eu: posted"]
    assert script.post(folders, script.forge(github(forge))) == ["prod: updated", "prod-eu: updated"]
    assert len(forge.comments) == 2


def test_where_nothing_changes_there_is_no_new_comment_but_an_old_one_says_so(
    script: ModuleType, forge: Forge, review: Path
) -> None:
    written(review, "prod", level="no change", text="nothing")
    target = script.forge(github(forge))

    assert script.post([review], target) == ["prod: nothing changes, not posted"]
    forge.add("<!-- hyperpod-cdk review: prod -->\nreplaces the cluster")
    assert script.post([review], target) == ["prod: updated"]
    assert forge.comments[0]["body"].endswith("nothing\n")


def test_a_refusal_is_one_line_and_fails(
    script: ModuleType, forge: Forge, review: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forge.broken = 403
    for name, value in github(forge).items():
        monkeypatch.setenv(name, value)

    assert script.main([str(review)]) == 1
    assert capsys.readouterr().err == f"GET {forge.address}{PULL}?per_page=100&page=1: 403 Forbidden\n"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "neither GITHUB_REPOSITORY nor CI_API_V4_URL is set: where should the review be posted?"),
        ({"GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": "x"}, "not set: PULL_REQUEST, GITHUB_TOKEN"),
        ({"CI_API_V4_URL": "x"}, "not set: CI_PROJECT_ID, CI_MERGE_REQUEST_IID, REVIEW_TOKEN"),
    ],
)
def test_what_is_not_set_is_named(script: ModuleType, environment: dict[str, str], message: str) -> None:
    with pytest.raises(script.PostError) as error:
        script.forge(environment)
    assert str(error.value) == message


def test_two_reviews_of_one_environment_are_not_posted(
    script: ModuleType, forge: Forge, review: Path, tmp_path: Path
) -> None:
    forged = written(tmp_path / "forged", "prod", level="no change", text="nothing to see")
    for folders in ([review, forged], [forged, review]):
        with pytest.raises(script.PostError, match=r"^two reviews have the first line '<!-- hyperpod-cdk review: prod"):
            script.post(folders, script.forge(github(forge)))
    assert forge.asked == []


def test_what_is_no_review_is_not_posted(script: ModuleType, forge: Forge, review: Path, tmp_path: Path) -> None:
    (review / "report.md").write_text("hello", encoding="utf-8")
    with pytest.raises(script.PostError, match=r"report\.md: its first line does not mark a review"):
        script.post([review], script.forge(github(forge)))
    with pytest.raises(script.PostError, match="holds no review"):
        script.post([tmp_path], script.forge(github(forge)))
    assert script.main([]) == 2
    assert forge.asked == []
