"""Write the cluster that new embedded stores are copied from, with the installed Postgres: tools/cluster.py"""

from __future__ import annotations

import lzma
import tarfile
import tempfile
from pathlib import Path

from memstore.store.embedded.data_directory import TEMPLATE, run_initdb
from memstore.store.embedded.folder import Account

# What pg_resetwal and each start make anew, and statistics about the making.
EMPTIED = ("pg_wal", "pg_stat")
LEFT_OUT = ("memstore.conf", "postmaster.opts")


def main() -> None:
    """Make a cluster and pack it, the same files always to the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        account = Account.of(data)
        account.make_folder(data)
        run_initdb(data, account)
        with lzma.open(TEMPLATE, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(data.rglob("*")):
                name = path.relative_to(data)
                if path.is_file() and (name.parts[0] in EMPTIED or name.parts[0] in LEFT_OUT):
                    continue
                archive.add(path, str(name), recursive=False, filter=anonymize)
    print(f"{TEMPLATE}: {TEMPLATE.stat().st_size:,} bytes")


def anonymize(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove when, and by whom, a file was made."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
