"""What is installed: a wheel made from a clone without the embedding model has it, and runs the README's ten lines."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from memstore._version import __version__
from memstore.providers.minilm import WEIGHTS_BYTES
from memstore.store.embedded import server
from tests import documented
from tests.command_line import environment

ROOT = Path(__file__).parents[2]
MODEL = "memstore/providers/all-MiniLM-L6-v2/"


@pytest.mark.slow
def test_a_wheel_has_the_model_and_runs_the_ten_lines_without_a_network(tmp_path: Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, files):
        source, target = ROOT / name.decode(), tmp_path / "clone" / name.decode()
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    assert not (tmp_path / "clone" / MODEL).exists()
    pip(tmp_path, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), "./clone")
    [wheel] = tmp_path.glob("memstore_llm-*.whl")
    with ZipFile(wheel) as packed:
        names = packed.namelist()
        assert packed.getinfo(f"{MODEL}model.safetensors").file_size == WEIGHTS_BYTES
    assert {
        f"{MODEL}NOTICE",
        f"{MODEL}tokenizer.json",
        f"{MODEL}modules.json",
        "memstore/providers/minilm.onnx",
    } <= set(names)
    assert wheel.stat().st_size < 80_000_000, "an index takes no file over 100 MB"
    assert [path.name for path in (tmp_path / "clone").glob(".model-*")] == []

    pip(tmp_path, "install", "--no-deps", "--no-index", "--target", str(tmp_path / "installed"), str(wheel))
    # What it depends on is found where the tests have it; a clone that is installed there is not: its .pth is not read.
    path = os.pathsep.join([str(tmp_path / "installed"), sysconfig.get_path("purelib")])
    home = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(tmp_path))
    env = environment(PYTHONPATH=path, MEMSTORE_EMBEDDER="onnx:all-MiniLM-L6-v2", **home)
    ten_lines = next(step.code for step in documented.read(ROOT / "README.md").steps if "memstore.open()" in step.code)
    program = f"{ten_lines}\nprint(memstore.__file__, memstore.__version__)"
    without = ["unshare", "--net"] if shutil.which("unshare") and os.geteuid() == 0 else []
    command = [*without, sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    for data in tmp_path.glob("*/data"):
        server.stop(data.parent)
    assert ran.returncode == 0, ran.stderr
    assert "The user is allergic to peanuts." in ran.stdout
    assert ran.stdout.splitlines()[-1] == f"{tmp_path}/installed/memstore/__init__.py {wheel.name.split('-')[1]}"


def test_what_is_released_together_has_one_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    client = json.loads((ROOT / "clients/typescript/package.json").read_text(encoding="utf-8"))
    chart = yaml.safe_load((ROOT / "deploy/helm/memstore/Chart.yaml").read_text(encoding="utf-8"))
    assert re.findall(r"^## ([\d.]+)", changes, re.M)[0] == __version__
    assert (client["version"], chart["version"], chart["appVersion"]) == (__version__, __version__, __version__)


def pip(folder: Path, *command: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pip", command[0], "--quiet", *command[1:]], cwd=folder, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
