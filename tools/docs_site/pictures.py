"""Pictures of schedules: the real scheduler on simulated machines, drawn as SVG.

Nothing here is drawn by hand: the spans are those of a simulated run, so a picture cannot show what the scheduler would
not do. Colours are readable on a light and on a dark page.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine.commands import Command
from gristmill.engine.events import Event
from gristmill.engine.replay import Step
from gristmill.engine.schedule import schedule
from gristmill.engine.spans import Span

WIDTH, LEFT, ROW, GAP, TOP, BOTTOM = 860, 110, 14, 8, 26, 34
COLOURS = ("#4c8dd6", "#3aa17e", "#d9822b", "#9a6fc0")
KINDS = {"set-up": "#9aa0a6", "lost": "#d64545", "raised": "#d64545", "wasted": "#d64545"}

MACHINE: dict[str, object] = {"cpus": 6, "gpus": 1}
STAGES: list[dict[str, object]] = [
    {"name": "read", "service_s": 0.2},
    {"name": "filter", "service_s": 0.6},
    {"name": "classify", "gpus": 1, "service_s": 0.25, "setup_s": 6},
    {"name": "write", "service_s": 0.1},
]
ITEMS = 160


class Drawn(NamedTuple):
    """Spans of a run, names of its stages, and how long it took."""

    spans: list[Span]
    names: tuple[str, ...]
    makespan_s: float
    bound_s: float


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the pictures as (path on the site, SVG)."""
    streamed = simulate({"items": ITEMS, "nodes": MACHINE, "stages": STAGES})
    yield "pictures/streamed.svg", draw(streamed, streamed.makespan_s, "All stages at once")
    in_turn = _in_turn()
    yield "pictures/in-turn.svg", draw(in_turn, in_turn.makespan_s, "The same stages one after another")
    slow = {"stage": "classify", "from_s": 15, "until_s": 30, "factor": 4}
    slowed = simulate({"items": ITEMS, "nodes": MACHINE, "stages": STAGES, "slowdowns": [slow]})
    yield "pictures/slowed.svg", draw(slowed, slowed.makespan_s, "The classifier takes four times as long for a while")
    killed = simulate(
        {"items": ITEMS, "nodes": MACHINE, "stages": STAGES, "seed": 3, "faults": {"kill_worker_every_s": 12}}
    )
    yield "pictures/killed.svg", draw(killed, killed.makespan_s, "A worker is killed every twelve seconds")


def simulate(document: Mapping[str, object]) -> Drawn:
    """Run a specification and keep what every worker did."""
    simulation = Simulation(SimulationSpec.parse(document))
    steps: list[Step] = []
    handle = simulation.scheduler.handle

    def recorded(*events: Event) -> list[Command]:
        commands = handle(*events)
        steps.append(Step(len(steps) + 1, events, commands, simulation.scheduler.now))
        return commands

    simulation.scheduler.handle = recorded  # type: ignore[method-assign]
    result = simulation.run()
    shown = schedule(steps, simulation.groups)  # type: ignore[arg-type]  # a group has what is asked of its shape
    names = tuple(str(stage.name) for stage in simulation.spec.stages)
    return Drawn([span for span in shown if isinstance(span, Span)], names, result.makespan_s, result.bound_s)


def _in_turn() -> Drawn:
    """Each stage by itself on the whole machine, the next when the one before is done."""
    spans: list[Span] = []
    start = bound = 0.0
    for group, stage in enumerate(STAGES):
        alone = simulate({"items": ITEMS, "nodes": MACHINE, "stages": [stage]})
        spans += [
            Span(s.kind, 100 * group + s.worker, group, start + s.start_s, start + s.end_s, s.lane) for s in alone.spans
        ]
        start += alone.makespan_s
        bound += alone.bound_s
    return Drawn(spans, tuple(str(stage["name"]) for stage in STAGES), start, bound)


def draw(run: Drawn, until_s: float, title: str) -> str:
    """Draw a row for each worker, grouped by stage, with a time axis below."""
    rows = sorted({(span.group, span.worker) for span in run.spans if span.seconds > 0})
    tops: dict[tuple[int, int], float] = {}
    y = float(TOP)
    for place, row in enumerate(rows):
        y += GAP if place and rows[place - 1][0] != row[0] else 0
        tops[row] = y
        y += ROW
    height = y + BOTTOM
    scale = (WIDTH - LEFT - 10) / until_s
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
            f'aria-label="{escape(title)}" font-family="sans-serif" font-size="11" fill="#80868b">'
        ),
        f'<text x="{LEFT}" y="14">{escape(title)}: {run.makespan_s:.0f} s</text>',
    ]
    parts += _labels(run.names, tops)
    parts += [_bar(span, tops[span.group, span.worker], scale) for span in run.spans if span.seconds > 0]
    parts += _axis(until_s, y + 6, scale)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _labels(names: Sequence[str], tops: Mapping[tuple[int, int], float]) -> Iterator[str]:
    for group, name in enumerate(names):
        own = [top for (row, _), top in tops.items() if row == group]
        if own:
            middle = (min(own) + max(own) + ROW) / 2 + 4
            yield f'<text x="{LEFT - 8}" y="{middle:.0f}" text-anchor="end">{escape(name)}</text>'


def _bar(span: Span, top: float, scale: float) -> str:
    colour = KINDS.get(span.kind, COLOURS[span.group % len(COLOURS)])
    x, width = LEFT + span.start_s * scale, max(0.6, span.seconds * scale - 0.3)
    return f'<rect x="{x:.1f}" y="{top + 1:.0f}" width="{width:.1f}" height="{ROW - 2}" fill="{colour}"/>'


def _axis(until_s: float, y: float, scale: float) -> Iterator[str]:
    step = 5 if until_s <= 60 else 10 if until_s <= 120 else 20
    yield f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.0f}" y2="{y:.0f}" stroke="#80868b" stroke-width="0.7"/>'
    for second in range(0, int(until_s) + 1, step):
        yield f'<text x="{LEFT + second * scale:.0f}" y="{y + 14:.0f}" text-anchor="middle">{second} s</text>'
