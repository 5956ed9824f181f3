"""Damage to files of a run directory, chosen by a seed, and runs that were left unfinished for it.

Nothing is killed: a scene is made once by a run in this process that is interrupted where the scene says, put aside and
copied back for every seed, to the same path, because the ledger names its files in full.
"""

import contextlib
import io
import json
import random
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.backends.local import LocalExecutor
from gristmill.cli.status import status
from gristmill.errors import ConfigError, EngineBug, GristmillError, Interrupted
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

GARBAGE = (b"null", b"[]", b"{}", b"5", b"[" * 5_000, b"\xff\xfe\0", b'{"root":0}', b"\r", b"Zm9v" * 40)


class Toil(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Fails on some documents, and stops the run when told to, as Ctrl-C would."""

    calls_left: dict = {}  # noqa: RUF012  # by stage name; outside of the configuration: the resumed run is the same

    def process(self, task):
        left = Toil.calls_left.get(self.stage_name())
        if left is not None:
            Toil.calls_left[self.stage_name()] = left - 1
            if left <= 0:
                raise KeyboardInterrupt
        if "cannot be worked on" in task.column("text").to_pylist():
            raise ValueError("will not do")
        return task


@dataclass
class Scene:
    """One pipeline, where it works, and how its run was left."""

    name: str
    home: Path
    exchange: bool = False
    stop: dict = field(default_factory=dict)  # after how many calls of which stage
    unpublished: bool = False  # killed between the last line of its ledger and the renames

    @property
    def work(self):
        return self.home / "work"

    @property
    def run_dir(self):
        return self.work / "out" / ".gristmill"

    def run(self, **options):
        stages = [
            JsonlReader(str(self.home / "in"), blocksize=200),
            Toil().with_(name="toil"),
            ScoreFilter(WordCountFilter(min_words=3)),
        ]
        if self.exchange:
            stages += [Exchange("text", 3), Toil().with_(name="more_toil")]
        pipeline = Pipeline("damage", stages=[*stages, JsonlWriter(str(self.work / "out"))])
        executor = LocalExecutor(num_workers=0)
        paths = {"rejects_path": str(self.work / "rejects")}
        return pipeline.run(executor, max_quarantined=None, quiet=True, **paths, **options)

    def prepare(self):
        """Make the input, run undisturbed for what is expected, then leave the scene and put it aside."""
        (self.home / "in").mkdir(parents=True)
        self.make_input()
        self.expected = self.books(self.run()), self.contents()
        shutil.rmtree(self.work)
        self.leave()
        shutil.copytree(self.work, self.home / "left")
        return self

    def make_input(self):
        for number in range(3):
            lines = [json.dumps({"id": f"{number}-{row}", "text": _text(number, row)}) for row in range(6)]
            lines.insert(number, '{"broken')
            (self.home / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")

    def leave(self):
        if self.stop:
            Toil.calls_left = dict(self.stop)
            try:
                self.run()
            except Interrupted:
                pass
            finally:
                Toil.calls_left = {}
        else:
            self.run()
        if self.unpublished:
            self._take_back_the_last_renames()

    def _take_back_the_last_renames(self):
        last = json.loads((self.run_dir / "ledger.jsonl").read_text().splitlines()[-1])
        for file in (*last["files"], *last["side_files"]):
            Path(file["temporary"]).parent.mkdir(parents=True, exist_ok=True)
            Path(file["final"]).rename(file["temporary"])
        (self.run_dir / "report.json").unlink(missing_ok=True)

    def restore(self):
        shutil.rmtree(self.work)
        shutil.copytree(self.home / "left", self.work)

    def contents(self):
        """Every published file, quarantine included."""
        return {
            str(path.relative_to(self.work)): path.read_bytes()
            for path in sorted(self.work.rglob("*.jsonl"))
            if not {"tmp"} & set(path.parts) and path.name not in ("ledger.jsonl", "metrics.jsonl")
        }

    @staticmethod
    def books(result):
        return result.read, result.written, result.dropped, result.quarantined, result.balanced


def _text(number, row):
    if row == 2:
        return "too short"
    return "cannot be worked on" if row == 4 and number else f"the miller of {number} {row} went to the river"


SCENES = {
    "half done": {"stop": {"toil": 5}},
    "finished": {},
    "before its renames": {"unpublished": True},
    "before the exchange": {"exchange": True, "stop": {"toil": 5}},
    "behind the exchange": {"exchange": True, "stop": {"more_toil": 1}},
    "finished with an exchange": {"exchange": True},
}


def damage(scene, seed):
    """Damage one to three files; return what was done, in words."""
    chance = random.Random(seed)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        inside = sorted(path for path in scene.run_dir.rglob("*") if path.is_file())
        ledgers = [path for path in inside if path.name == "ledger.jsonl"]
        outside = sorted(path for path in scene.work.rglob("*.jsonl") if path not in inside)
        files = chance.choice((inside, inside, ledgers or inside, outside or inside))
        if not files:
            continue
        path = chance.choice(files)
        # What is published is compared by its size unless the machine was restarted: only that is damaged here.
        kind = chance.choice((cut, empty, remove, more) if files is outside else KINDS)
        kind(path, chance)
        done.append(f"{kind.__name__} {path.relative_to(scene.work)}")
    return ", ".join(done)


def flip(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 3))):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(content))


def digit(path, chance):
    content = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    values = [
        place for place in places if content[place - 1 : place] == b":"
    ]  # of JSON, where most digits are in paths
    places = chance.choice((places, values or places))
    if places:
        content[chance.choice(places)] = ord(chance.choice("0123456789"))
    path.write_bytes(bytes(content))


def cut(path, chance):
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))] if content else b"")


def zeros(path, chance):
    content = path.read_bytes()
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + chance.choice((1, 16, 4096)))
    path.write_bytes(content[:start] + bytes(end - start) + content[end:])


def _on_lines(change):
    def damaged(path, chance):
        lines = path.read_bytes().splitlines(keepends=True)
        if lines:
            change(lines, chance)
        path.write_bytes(b"".join(lines))

    damaged.__name__ = change.__name__
    return damaged


@_on_lines
def double_line(lines, chance):
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))


@_on_lines
def drop_line(lines, chance):
    del lines[chance.randrange(len(lines))]


@_on_lines
def swap_lines(lines, chance):
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


@_on_lines
def garbage_line(lines, chance):
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(GARBAGE) + b"\n")


def garbage(path, chance):
    path.write_bytes(chance.choice(GARBAGE))


def more(path, chance):
    path.write_bytes(path.read_bytes() + chance.choice(GARBAGE))


def empty(path, chance):
    del chance
    path.write_bytes(b"")


def remove(path, chance):
    del chance
    path.unlink()


KINDS = (flip, flip, digit, digit, cut, zeros, double_line, drop_line, swap_lines, garbage_line, garbage, empty, remove)


def outcome(scene, seed):
    """Damage a scene and run it again. Return how it ended; raise AssertionError for anything but the promised."""
    scene.restore()
    told = f"seed {seed}, {scene.name}: {damage(scene, seed)}"
    _look_at(scene, told)
    result, refused = _run(scene, told)
    # Whoever is refused does what the words say, starts over, and gets everything.
    for _ in range(20):
        if result is None:
            result, _ = _run(scene, told, fresh=True)
    assert scene.books(result) == scene.expected[0], f"{told}: other books"
    assert scene.contents() == scene.expected[1], f"{told}: {_difference(scene)}"
    finished = getattr(result, "already_finished", False)  # a workflow of several runs does not say
    return refused or ("finished already" if finished else "same output")


def _look_at(scene, told):
    """`gristmill status` shows what there is, or says in words why it cannot."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            status(str(scene.work / "out"))
            status(str(scene.work / "out"), as_json=True)
    except ConfigError:
        pass
    except Exception as error:
        raise AssertionError(f"{told}: status: raw {type(error).__name__}: {error}") from error


def _run(scene, told, **options):
    """Return the result, or None and how it was refused; a file that is said to be in the way is moved away."""
    try:
        return scene.run(**options), ""
    except EngineBug as bug:
        raise AssertionError(f"{told}: {bug}") from bug
    except GristmillError as refusal:
        path, _, words = str(refusal).partition(": ")
        if "this one was already there and is not replaced. Move it away" in words:
            Path(path).unlink()  # a file nobody knows any more, and that is damaged besides
        elif options or not words:
            raise AssertionError(f"{told}: {refusal}") from refusal
        return None, f"refused ({type(refusal).__name__})"
    except Exception as error:
        raise AssertionError(f"{told}: raw {type(error).__name__}: {error}") from error


def _difference(scene):
    found, expected = scene.contents(), scene.expected[1]
    changed = [name for name in expected if name in found and found[name] != expected[name]]
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    return f"missing {missing}, extra {extra}, changed {changed}"


def try_seeds(scene, seeds):
    """Try every seed on a scene; return how often each outcome was seen."""
    scene.prepare()
    return Counter(outcome(scene, seed) for seed in seeds)
