"""What is installed: a wheel with the embedding model and its graph, made from a clone that does not have the model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
MODEL = "memstore/providers/all-MiniLM-L6-v2/"


@pytest.mark.slow
def test_a_wheel_has_the_model(tmp_path: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, files):
        source, target = ROOT / name.decode(), tmp_path / "clone" / name.decode()
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    assert not (tmp_path / "clone" / MODEL).exists()
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), "./clone"]
    ran = subprocess.run(pip, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    [wheel] = tmp_path.glob("memstore-*.whl")
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        assert packed.getinfo(f"{MODEL}model.safetensors").file_size == 90_868_376
    assert {f"{MODEL}tokenizer.json", f"{MODEL}modules.json", "memstore/providers/minilm.onnx"} <= set(names)
    assert wheel.stat().st_size < 100_000_000, "an index takes no larger file"
    assert [path.name for path in (tmp_path / "clone").glob(".model-*")] == []
