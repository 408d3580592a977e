"""Where data sets lie: folders of this machine, and object stores ("s3://bucket/set") through fsspec.

A place is a pathlib.Path here and a upath.UPath elsewhere. Both have the same methods for reading; writing goes through
the functions below, which leave a file complete or not there at all.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tmaops.dataset.errors import Refused


def place(given: Any) -> Path:
    """The place that a text or path names."""
    if "://" not in str(given):
        try:
            return Path(given)
        except TypeError as error:
            raise Refused("a path", repr(given), "text or a path") from error
    try:
        from upath import UPath

        made = UPath(given)
        made.fs  # noqa: B018  (asks for the store's own package)
    except ImportError as error:
        needed = "pip install universal_pathlib, and the store's package (s3fs, gcsfs, adlfs)"
        raise Refused(str(given), str(error), needed) from error
    return made


def check_name(path: Path) -> None:
    """Refuses a name that Arrow, HDF5 and JSON cannot hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise Refused(repr(str(path)), "a name that is not UTF-8", "a name in UTF-8") from error


def is_local(path: Path) -> bool:
    return isinstance(path, Path)


def name_in(source: Path, path: Path) -> str:
    """What messages and outputs call a file of a data set."""
    return path.name if path == source else str(path.relative_to(source))


def opened(path: Path) -> Path | BinaryIO:
    """What a library reads a file from: its path here, an open file elsewhere."""
    return path if is_local(path) else path.open("rb")


def fingerprint(path: Path) -> list:
    """Size, and change time or tag, of a file: what tells a resumed run that its input is the same."""
    if is_local(path):
        found = os.stat(path)
        return [found.st_size, found.st_mtime_ns]
    info, tags = path.fs.info(path.path), ("ETag", "etag", "md5Hash", "LastModified", "mtime", "created")
    return [info["size"], str(next((info[tag] for tag in tags if tag in info), ""))]


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A local path to write a file at, which then takes its place at once; it leaves nothing behind when it fails."""
    if is_local(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        trial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    else:
        trial = Path(tempfile.mkdtemp()) / target.name
    try:
        yield trial
        if not is_local(target):
            (target.fs.put_file if trial.is_file() else target.fs.put)(str(trial), target.path)
            return
        if trial.is_file():
            with open(trial, "rb") as file:
                os.fsync(file.fileno())
        elif target.is_dir():  # of an earlier try
            remove_tree(target)
        os.replace(trial, target)
    finally:
        if trial.exists():
            remove_tree(trial)
        if not is_local(target):
            trial.parent.rmdir()


def write_whole(path: Path, text: str) -> None:
    """A small file that is there complete or not at all, also after a power cut."""
    with whole(path) as trial:
        trial.write_text(text, encoding="utf-8")


def copy(source: Path, target: Path, link: bool = False) -> None:
    """A file as it is. link: it may share the source's bytes on the disk."""
    if is_local(source) and is_local(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if link:
            with contextlib.suppress(OSError):
                os.link(source, target)
                return
        shutil.copy2(source, target) if link else shutil.copyfile(source, target)
    elif not is_local(source) and not is_local(target) and source.fs is target.fs:
        source.fs.cp_file(source.path, target.path)
    else:
        with whole(target) as trial, source.open("rb") as read, open(trial, "wb") as written:
            shutil.copyfileobj(read, written, 8 << 20)


def move(source: Path, target: Path) -> None:
    """A file or folder of this machine, or a file elsewhere, under another name."""
    if is_local(source):
        os.rename(source, target)
    else:
        target.fs.mv(source.path, target.path)


def remove_tree(path: Path) -> None:
    """A file, or a folder with all that is in it."""
    if path.is_file() or path.is_symlink():
        path.unlink()
    elif is_local(path):
        shutil.rmtree(path)
    else:
        path.fs.rm(path.path, recursive=True)
