"""`Duplicates`: what a deduplication has found, from the findings it leaves beside its output."""

import msgspec

from gristmill.dashboard.drawing import split_bar
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.report_rules import name_of
from gristmill.metrics.amounts import share

CLUSTERS_SHOWN = 10
PAIRS_SHOWN = 5
SOURCES_SHOWN = 30


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Documents that are the same to the search. One stays."""

    size: int = 0
    kept_id: str = ""
    compared_id: str = ""
    text: str = ""
    differences: tuple[str, ...] = ()


class SimilarPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two documents next to the threshold, and in what they differ."""

    similarity: float = 0.0
    text: str = ""
    other: str = ""
    differences: tuple[str, ...] = ()


class SourceLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What one file lost."""

    documents: int = 0
    removed: int = 0


class Duplicates(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one deduplication; `stage` is its name, where it is one of a pipeline."""

    stage: str = ""
    documents: int
    removed: int
    cluster_sizes: dict[str, int]
    sources: dict[str, SourceLoss] = {}
    largest_clusters: tuple[Cluster, ...] = ()
    just_above: tuple[SimilarPair, ...] = ()  # removed
    just_below: tuple[SimilarPair, ...] = ()  # kept


def read_duplicates(content: bytes | None, *, examples: bool, stage: str = "") -> Duplicates | None:
    """Return the findings a file holds; None if it is missing, damaged, or of some other kind."""
    try:
        found = msgspec.json.decode(content or b"", type=Duplicates)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    clusters, above, below = found.largest_clusters[:CLUSTERS_SHOWN], found.just_above, found.just_below
    if not examples:
        clusters = tuple(msgspec.structs.replace(one, text="", differences=()) for one in clusters)
        above = below = ()
    return msgspec.structs.replace(
        found, stage=stage, largest_clusters=clusters, just_above=above[:PAIRS_SHOWN], just_below=below[:PAIRS_SHOWN]
    )


def duplicates_section(found: Duplicates) -> Html:
    """Cluster sizes, what files lost, the largest clusters, pairs next to the threshold."""
    stay = found.documents - found.removed
    said = (
        f"{found.removed:,} of {found.documents:,} documents ({share(found.removed, found.documents)}) are duplicates "
        f"of others; {stay:,} stay."
    )
    sizes: list[list[Child]] = [[size, f"{number:,}"] for size, number in found.cluster_sizes.items()]
    return joined(
        tag("p", said),
        table(["documents in a cluster", "clusters"], sizes) if sizes else None,
        _sources(found),
        tag("h3", "The largest clusters") if found.largest_clusters else None,
        *(_cluster(cluster) for cluster in found.largest_clusters),
        *_pairs("Just similar enough to be removed", found.just_above),
        *_pairs("Just not similar enough", found.just_below),
    )


def _sources(found: Duplicates) -> Html | None:
    losses = sorted(found.sources.items(), key=lambda item: (-item[1].removed, item[0]))[:SOURCES_SHOWN]
    rows: list[list[Child]] = [
        [
            tag("span", text(file, 300), class_="place"),
            split_bar(loss.documents - loss.removed, loss.documents),
            f"{loss.documents:,}",
            f"{loss.removed:,}",
            share(loss.removed, loss.documents),
        ]
        for file, loss in losses
    ]
    return table(["file", "", "documents", "removed", "of these"], rows, numbers=2) if rows else None


def _cluster(cluster: Cluster) -> Html:
    where = joined(f"{cluster.size:,} documents; ", name_of(cluster.kept_id), " stays")
    return tag(
        "div",
        tag("div", where, class_="place"),
        tag("q", text(cluster.text, 400), dir="auto") if cluster.text else None,
        _differences(cluster.differences),
        class_="example g",
    )


def _pairs(title: str, pairs: tuple[SimilarPair, ...]) -> list[Html]:
    if not pairs:
        return []
    made = (
        tag(
            "div",
            tag("div", f"similarity {pair.similarity:.3f}", class_="place"),
            tag("q", text(pair.text, 400), dir="auto"),
            _differences(pair.differences),
            class_="example k",
        )
        for pair in pairs
    )
    return [tag("h3", title), *made]


def _differences(differences: tuple[str, ...]) -> Html | None:
    return tag("pre", text("\n".join(differences), 1_000)) if differences else None
