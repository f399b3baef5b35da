"""Posts reviews on a pull or merge request, each as one comment that is updated in place.

    python3 .ci/post_review.py FOLDER...

Each folder holds a review as 'hyperpod-cdk review ENV --out report.md --out report.json' writes it. The first line of
report.md marks the comment, so that the next run finds and updates it; of several, which two runs at once can leave,
the first stays. A person's comment with such a line stays as it is, for whoever wrote it could change the review in it.
An environment in which nothing changes gets no new comment. A renamed file has a review under each of its names: the
one of the newer name is posted.
Runs with nothing but Python, so that the job that may write comments runs no code of the pull request.

GitHub: GITHUB_API_URL, GITHUB_REPOSITORY, PULL_REQUEST (its number), GITHUB_TOKEN (the workflow's own).
GitLab: CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, REVIEW_TOKEN (a project access token that may comment).
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MARKER = "<!-- hyperpod-cdk review"
PAGE = 100
PAGES = 100
TIMEOUT_SECONDS = 30


class PostError(Exception):
    """A review cannot be posted; the text is one line that says why."""


@dataclass(frozen=True, kw_only=True)
class Forge:
    """Where comments live: ``comments`` is the address of the list, ``single`` that of one with ``{}`` for its id."""

    comments: str
    single: str
    update_method: str
    headers: Mapping[str, str]
    own: str | None = None
    """Address that tells whose the token is; None on GitHub, where the token of a workflow is a bot's."""

    def listed(self) -> Iterator[dict[str, Any]]:
        """Give every comment, oldest first."""
        for page in range(1, PAGES + 1):
            found = self._ask("GET", f"{self.comments}?per_page={PAGE}&page={page}")
            if not isinstance(found, list):
                raise PostError(f"{self.comments}: the answer is no list of comments")
            yield from found
            if len(found) < PAGE:
                return

    def is_own(self) -> Callable[[dict[str, Any]], bool]:
        """Give what tells the comments that this token wrote, or another bot, from those of people."""
        if self.own is None:
            return lambda comment: (comment.get("user") or {}).get("type") == "Bot"
        found = self._ask("GET", self.own)
        if not isinstance(found, dict) or "id" not in found:
            raise PostError(f"{self.own}: the answer names no user")
        return lambda comment: (comment.get("author") or {}).get("id") == found["id"]

    def create(self, body: str) -> None:
        """Add a comment."""
        self._ask("POST", self.comments, body)

    def update(self, comment: int, body: str) -> None:
        """Replace a comment's text."""
        self._ask(self.update_method, self.single.format(comment), body)

    def delete(self, comment: int) -> None:
        """Remove a comment."""
        self._ask("DELETE", self.single.format(comment))

    def _ask(self, method: str, address: str, body: str | None = None) -> Any:
        data = None if body is None else json.dumps({"body": body}).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(address, data=data, method=method, headers=headers)  # noqa: S310 - the forge's own address
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - as above
                # what is deleted is answered with nothing
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise PostError(f"{method} {address}: {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            raise PostError(f"{method} {address}: {error}") from None


def forge(environment: Mapping[str, str]) -> Forge:
    """Tell from the environment variables which forge runs this. Raises PostError."""
    if "GITHUB_REPOSITORY" in environment:
        api, repository, number, token = _needed(
            environment, "GITHUB_API_URL", "GITHUB_REPOSITORY", "PULL_REQUEST", "GITHUB_TOKEN"
        )
        issues = f"{api}/repos/{repository}/issues"
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        return Forge(
            comments=f"{issues}/{number}/comments",
            single=f"{issues}/comments/{{}}",
            update_method="PATCH",
            headers=headers,
        )
    if "CI_API_V4_URL" in environment:
        api, project, number, token = _needed(
            environment, "CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID", "REVIEW_TOKEN"
        )
        notes = f"{api}/projects/{project}/merge_requests/{number}/notes"
        return Forge(
            comments=notes,
            single=f"{notes}/{{}}",
            update_method="PUT",
            headers={"PRIVATE-TOKEN": token},
            own=f"{api}/user",
        )
    raise PostError("neither GITHUB_REPOSITORY nor CI_API_V4_URL is set: where should the review be posted?")


def post(folders: list[Path], target: Forge) -> list[str]:
    """Post each folder's review and give one line for each that says what was done. Raises PostError."""
    reviews = _one_for_each(_review(folder) for folder in folders)
    is_own = target.is_own()
    comments = [each for each in target.listed() if is_own(each)]
    done = []
    for review in reviews:
        ids = [
            each["id"] for each in comments if str(each.get("body") or "").partition("\n")[0].strip() == review.marker
        ]
        if ids:
            target.update(ids[0], review.body)
            for surplus in ids[1:]:
                target.delete(surplus)
            done.append(f"{review.name}: updated")
        elif review.changes:
            target.create(review.body)
            done.append(f"{review.name}: posted")
        else:
            done.append(f"{review.name}: nothing changes, not posted")
    return done


@dataclass(frozen=True, kw_only=True)
class Review:
    """One folder's review; ``goes`` where the head has no such environment."""

    name: str
    body: str
    changes: bool
    goes: bool

    @property
    def marker(self) -> str:
        """The first line, by which the comment is found."""
        return self.body.partition("\n")[0]


def _one_for_each(reviews: Iterable[Review]) -> list[Review]:
    """Give one review for each comment: of two, the one whose environment is there. Raises PostError where both are."""
    kept: dict[str, Review] = {}
    for review in reviews:
        other = kept.get(review.marker)
        if other is not None and not other.goes and not review.goes:
            raise PostError(f"two reviews have the first line {review.marker!r}; one of them is not what it says")
        if other is None or other.goes:
            kept[review.marker] = review
    return list(kept.values())


def _review(folder: Path) -> Review:
    try:
        body = (folder / "report.md").read_text(encoding="utf-8")
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        level = report["verdict"]["level"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PostError(f"{folder}: holds no review: {error}") from None
    if not body.startswith(MARKER):
        raise PostError(f"{folder}/report.md: its first line does not mark a review")
    return Review(
        name=str(report.get("environment") or folder.name),
        body=body,
        changes=level != "no change",
        goes=(report.get("head") or {}).get("label") == "nothing",
    )


def _needed(environment: Mapping[str, str], *names: str) -> list[str]:
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise PostError(f"not set: {', '.join(missing)}")
    return [environment[name].rstrip("/") for name in names]


def main(arguments: list[str]) -> int:
    """Run the script; 0 where every review was posted, 1 where one could not be, 2 without a folder."""
    if not arguments:
        print("usage: post_review.py FOLDER...", file=sys.stderr)
        return 2
    try:
        for line in post([Path(each) for each in arguments], forge(os.environ)):
            print(line)
    except PostError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
