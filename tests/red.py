"""Takes guard after guard out of a copy of the work tree and sees the named tests fail.

A test that cannot fail proves nothing. `make red`, or `python -m tests.red 4 13` for some rules;
LANES=n for as many copies at once.
Last line of stdout: {"red": n, "green": [...], "errors": [...], "ok": bool}; exit 1 when not ok.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.nursery import Nursery

ROOT = Path(__file__).resolve().parent.parent
LANES = int(os.environ.get("LANES", "2"))
# A run may take so long, on a machine that does much else: this, and this for each test.
RUN_SECONDS_MAX, TEST_SECONDS_MAX = 300, 60
# What the migrations write into the database.
OF_THE_DATABASE = (
    "refunds/domain/states.py",
    "refunds/migrations/0002_guards.py",
    "refunds/migrations/0013_over_refunded.py",
    "refunds/migrations/0015_history_without_locks.py",
    "refunds/migrations/0017_one_name_of_a_wish.py",
    "refunds/migrations/0018_open_while_submitting.py",
    "reconciliation/migrations/0004_case_guards.py",
    "reconciliation/migrations/0006_outbox.py",
    "reconciliation/migrations/0014_outbox_of_what_is_told.py",
)


@dataclass(frozen=True)
class Edit:
    """One guard taken out: `find` becomes `replace` in `file`; each of `tests` must fail."""

    rule: int
    breaks: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"rule {self.rule:02}: {self.breaks}"


@dataclass(frozen=True)
class Lane:
    """A copy of the work tree with a database of its own, and with what begins its runs."""

    number: int
    tree: Path
    environment: dict[str, str] = field(repr=False)
    nursery: Nursery = field(repr=False)


def edits() -> list[Edit]:
    """The list; raises KeyError or TypeError for an entry that lacks something."""
    table = tomllib.loads((ROOT / "tests/red.toml").read_text())
    return [
        Edit(
            rule=row["rule"],
            breaks=row["breaks"],
            file=row["file"],
            find=row["find"],
            replace=row["replace"],
            tests=tuple(row["test"]),
        )
        for row in table["edit"]
    ]


def copied_tree(target: Path) -> None:
    """Every file that git knows or would take, as it is in the work tree now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def servers() -> dict[str, str]:
    """Start the test servers once, and say where they are; the copies use them too."""
    os.environ["AFTERSEND_ENV"] = "test"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from config import settings
    from config.servers import ensure_servers

    ensure_servers()
    return {"DATABASE_URL": settings.DATABASE_URL, "CELERY_BROKER_URL": settings.BROKER_URL}


@contextmanager
def lanes() -> Iterator[list[Lane]]:
    where = servers()
    with tempfile.TemporaryDirectory(prefix="red-") as folder:
        made = []
        for number in range(LANES):
            tree = Path(folder, str(number))
            copied_tree(tree)
            database = _renamed(where["DATABASE_URL"], f"red_{number}")
            own = {"DATABASE_URL": database, "AFTERSEND_RUN_DIR": str(tree / ".run")}
            environment = os.environ | where | own
            made.append(Lane(number, tree, environment, Nursery(tree, environment)))
        _dropped(where, made)  # what a run that was ended from outside left behind
        try:
            yield made
        finally:
            for lane in made:  # what its tests started below its own folder
                lane.nursery.close()
                subprocess.run(
                    [sys.executable, "-m", "config.embedded", "stop", "test"],
                    cwd=lane.tree,
                    env=lane.environment,
                    check=True,
                    capture_output=True,
                )
            _dropped(where, made)


def _dropped(where: dict[str, str], made: list[Lane]) -> None:
    with psycopg.connect(where["DATABASE_URL"], autocommit=True) as connection:
        for lane in made:
            name = urlsplit(lane.environment["DATABASE_URL"]).path.removeprefix("/")
            doomed = sql.Identifier(f"test_{name}")
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(doomed))


def _renamed(url: str, suffix: str) -> str:
    """The same server, another database."""
    base, mark, query = url.partition("?")
    return f"{base}_{suffix}{mark}{query}"


def outcomes(
    lane: Lane, tests: tuple[str, ...], *, fresh: bool = False
) -> tuple[dict[str, str], str]:
    """Each test that ran with `passed`, `failed` or `error`, and the end of what pytest said.

    `fresh`: the edit changes the database's own guards, so the lane's database will not do.
    """
    report = lane.tree / "report.xml"
    report.unlink(missing_ok=True)
    more = {"DATABASE_URL": _renamed(lane.environment["DATABASE_URL"], "fresh")} if fresh else {}
    command = [
        *("pytest", "-q", "--tb=line", "-p", "no:randomly"),
        # What a nursery has imported nobody can rewrite any more; it has no test in it.
        *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
        *("-p", "no:cacheprovider", f"--junitxml={report}", *([] if fresh else ["--reuse-db"])),
        *tests,
    ]
    seconds = RUN_SECONDS_MAX + TEST_SECONDS_MAX * len(tests)
    try:
        ran = lane.nursery.run(*command, more=more, seconds=seconds)
    except subprocess.TimeoutExpired:
        return {}, f"did not end within {seconds} s"
    said = (ran.stdout + ran.stderr)[-2000:]
    if not report.exists():
        return {}, said
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        kinds = {child.tag for child in case}
        word = "error" if "error" in kinds else "failed" if "failure" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = word
    return found, said


def trouble(edit: Edit) -> str:
    """Why an edit cannot be applied, or nothing."""
    path = ROOT / edit.file
    count = path.read_text().count(edit.find) if path.is_file() else 0
    return "" if count == 1 else f"`find` occurs {count} times in {edit.file}"


@contextmanager
def without(lane: Lane, *off: Edit) -> Iterator[None]:
    """The lane's tree with these edits made, until the block ends."""
    whole = {each.file: (lane.tree / each.file).read_text() for each in off}
    try:
        for each in off:
            path = lane.tree / each.file
            path.write_text(path.read_text().replace(each.find, each.replace))
        yield
    finally:
        for file, text in whole.items():
            (lane.tree / file).write_text(text)


def on_lanes[Item, Result](
    made: list[Lane], trial: Callable[[Item, Lane], Result], items: Iterable[Item]
) -> list[Result]:
    """Each item's trial on a lane that is free, as many at once as there are lanes; in order."""
    free: SimpleQueue[Lane] = SimpleQueue()
    for lane in made:
        free.put(lane)

    def tried(item: Item) -> Result:
        lane = free.get()
        try:
            return trial(item, lane)
        finally:
            free.put(lane)

    with ThreadPoolExecutor(len(made)) as pool:
        return list(pool.map(tried, items))


def verdict(edit: Edit, lane: Lane) -> tuple[str, str]:
    """`red`, `green` or `error`, with what pytest said where it is not red."""
    with without(lane, edit):
        found, said = outcomes(lane, edit.tests, fresh=edit.file in OF_THE_DATABASE)
    if len(found) != len(edit.tests) or "error" in found.values():
        return "error", said
    if "passed" in found.values():
        return "green", "\n".join(name for name, word in found.items() if word == "passed")
    return "red", ""


def tried(edit: Edit, lane: Lane) -> tuple[Edit, str]:
    """One edit, with its line of output."""
    began = time.monotonic()
    word, said = verdict(edit, lane)
    print(f"{word:5} {edit.name} ({time.monotonic() - began:.1f} s)", flush=True)
    if said:
        print(said, flush=True)
    return edit, word


def unedited(chosen: list[Edit], made: list[Lane]) -> list[str]:
    """The named tests on the tree as it is: those that do not pass, or did not run."""
    tests = sorted({test for edit in chosen for test in edit.tests})
    shares = [tuple(tests[lane.number :: LANES]) for lane in made]
    with ThreadPoolExecutor(LANES) as pool:
        ran = list(pool.map(outcomes, made, shares))
    bad = [name for found, _ in ran for name, word in found.items() if word != "passed"]
    unmatched = len(tests) - sum(len(found) for found, _ in ran)
    if unmatched:  # more, where an entry names a test with parameters but not which of them
        bad.append(f"{len(tests)} tests are named and {len(tests) - unmatched} ran")
    if bad:
        print(*(said for _, said in ran), sep="\n")
    return bad


def main(rules: list[int]) -> int:
    chosen = [edit for edit in edits() if not rules or edit.rule in rules]
    errors = [f"{edit.name}: {why}" for edit in chosen if (why := trouble(edit))]
    results: list[tuple[Edit, str]] = []
    if not errors:
        with lanes() as made:
            errors = [f"unedited: {name}" for name in unedited(chosen, made)]
            if not errors:
                results = on_lanes(made, tried, chosen)
    print(*errors, sep="\n", end="\n" if errors else "")
    errors += [edit.name for edit, word in results if word == "error"]
    green = [edit.name for edit, word in results if word == "green"]
    red = sum(word == "red" for _, word in results)
    ok = not errors and not green and red == len(chosen) > 0
    print(json.dumps({"red": red, "green": green, "errors": errors, "ok": ok}))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main([int(rule) for rule in sys.argv[1:]]))
