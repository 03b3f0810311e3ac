"""The reader's training: a tiny one learns from a few messages, is written as ONNX, and reads. Needs torch and onnx."""

import json
import os
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the programs of training be imported, with one thread: beside other tests more wait for each other."""
    pytest.importorskip("onnx")
    pytest.importorskip("torch").set_num_threads(1)
    monkeypatch.syspath_prepend(str(TRAINING))


@pytest.mark.skipif("TRAINING" not in os.environ, reason="trains for minutes: make test-training")
def test_a_tiny_reader_is_trained_written_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import train

    from memstore.derive.reader.model import Reader
    from memstore.derive.reader.notes import Pair, ReaderInput

    lines = (TRAINING / "data" / "plain-1.jsonl").read_text("utf-8").splitlines()[:30]
    data, out = tmp_path / "data.jsonl", tmp_path / "reader"
    data.write_text("\n".join(lines), "utf-8")
    options = ["--check", str(data), "--out", str(out), "--epochs", "20"]
    monkeypatch.setattr(sys, "argv", ["train.py", str(data), *options])
    train.main()
    messages = [json.loads(line) for line in lines]
    notes = Reader(out).read([ReaderInput(each["before"], each["text"]) for each in messages])
    kept = [any(note.confidence >= 0.5 for note in found) for found in notes]
    right = [each == bool(message["facts"]) for each, message in zip(kept, messages, strict=True)]
    assert sum(right) > 0.8 * len(right)

    import train_pairs

    monkeypatch.setattr(train, "DECAY", 0.5)  # of a few steps the mean would be the beginning

    lives, same = tmp_path / "lives.jsonl", TRAINING / "lives" / "a.jsonl"
    lives.write_text("\n".join(same.read_text("utf-8").splitlines()[:1]), "utf-8")
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text("\n".join((TRAINING / "pairs.jsonl").read_text("utf-8").splitlines()[:12]), "utf-8")
    options = ["--pairs", str(pairs), "--lives", str(lives), "--check", str(pairs), "--out", str(out), "--epochs", "8"]
    monkeypatch.setattr(sys, "argv", ["train_pairs.py", *options])
    train_pairs.main()
    learnt = [json.loads(line) for line in pairs.read_text("utf-8").splitlines()]
    read = Reader(out).relations([Pair(each["old"], each["new"]) for each in learnt])
    told = [max(shares, key=lambda relation: shares[relation]) for shares in read]
    assert sum(label == each["label"] for label, each in zip(told, learnt, strict=True)) > 0.6 * len(learnt)
    assert Reader(out).read([ReaderInput(each["before"], each["text"]) for each in messages]) == notes


def test_what_another_does_is_learnt_as_leaving_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import train_pairs

    monkeypatch.setattr(train_pairs, "OTHERS", 1.0)
    moved = {"new": "moved to Cork", "new_plain": "Ana moved to Cork.", "label": "replaces"}
    still = {"new": "Cork is wet", "new_plain": "Cork is wet.", "label": "independent"}
    line = {"name": "Ana", "old": "live in Porto", "old_plain": "Ana lives in Porto.", "news": [moved, still]}
    ones_own, theirs = train_pairs.pairs_of_others(line)
    assert ones_own["old"] == "Ana lives in Porto." and ones_own["label"] == "independent"
    assert not ones_own["new"].startswith("Ana moved") and ones_own["new"].endswith(" moved to Cork.")
    assert (
        theirs["label"] == "replaces" and theirs["old"].split(" lives")[0] == theirs["new"].split(" moved")[0] != "Ana"
    )


def test_others_are_called_in_the_language_of_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    import train_pairs

    monkeypatch.setattr(train_pairs, "OTHERS", 1.0)
    for old, new, kin in (
        ("Ines isst kein Fleisch.", "Ines isst wieder Steak.", "Iness "),
        ("Ines lives in Porto.", "Ines moved to Cork.", "Ines's "),
    ):
        line = {"name": "Ines", "old_plain": old, "new_plain": new, "label": "replaces"}
        told = [pair["new"] for _ in range(40) for pair in train_pairs.pairs_of_others(line)]
        assert {text[: len(kin)] for text in told if text.startswith("Ines") and text != new} == {kin}
