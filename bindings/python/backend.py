"""What pip calls to install the package (PEP 517): it packs the files as they are. So pip fetches no builder, needs no network, and leaves
nothing in this folder."""
from __future__ import annotations

import base64
import hashlib
import io
import pathlib
import re
import tarfile
import typing
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = (HERE / "pyproject.toml").read_text(encoding="utf-8")
Settings = typing.Optional[typing.Dict[str, typing.Any]]


def field(name: str) -> str:
    found = re.search(rf'^{name} = "(.*)"$', PROJECT, re.M)
    if not found:
        raise ValueError(f"pyproject.toml has no {name}")
    return found[1]


NAME = f"{field('name')}-{field('version')}"
METADATA = (f"Metadata-Version: 2.1\nName: {field('name')}\nVersion: {field('version')}\nSummary: {field('description')}\n"
            f"License: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: {field('requires-python')}\n"
            f"Description-Content-Type: text/markdown; charset=UTF-8\n\n{(HERE / field('readme')).read_text(encoding='utf-8')}")
WHEEL = "Wheel-Version: 1.0\nGenerator: holdfast\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sources() -> list[pathlib.Path]:
    return sorted(path for path in (HERE / "holdfast").iterdir() if path.suffix == ".py" or path.name == "py.typed")


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    files = {f"holdfast/{path.name}": path.read_bytes() for path in sources()}
    files[f"{NAME}.dist-info/LICENSE"] = (HERE / "LICENSE").read_bytes()
    files[f"{NAME}.dist-info/METADATA"] = METADATA.encode()
    files[f"{NAME}.dist-info/WHEEL"] = WHEEL.encode()
    record = f"{NAME}.dist-info/RECORD"
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    wheel = f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # without the time: the same files, the same wheel
    return wheel


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    archived = f"{NAME}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / archived, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        about = tarfile.TarInfo(f"{NAME}/PKG-INFO")
        about.size = len(METADATA.encode())
        archive.addfile(about, io.BytesIO(METADATA.encode()))
        for path in (HERE / "pyproject.toml", HERE / "backend.py", HERE / "LICENSE", HERE / field("readme"), *sources()):
            archive.add(path, f"{NAME}/{path.relative_to(HERE)}")
    return archived
