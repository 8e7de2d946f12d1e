"""Files taken apart and put together again, so that a changed part still lies in a sound whole."""

from __future__ import annotations

import ast
import gzip
import io
import json
import math
import random
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

Change = Callable[[bytes], bytes]


class Container(Protocol):
    """A kind of file that has parts."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """The same file with one of its parts changed; raises where ``data`` is none of the kind."""


@dataclass(frozen=True)
class Bundle:
    """Several files in one input: the length of each (four bytes), then its bytes."""

    names: tuple[str, ...]
    inner: tuple[tuple[str, Container], ...] = ()

    def parts(self, data: bytes) -> list[bytes]:
        """The files; what is missing is empty."""
        found = []
        for _ in self.names:
            (length,) = struct.unpack("<I", data[:4].ljust(4, b"\0"))
            found.append(data[4 : 4 + length])
            data = data[4 + length :]
        return found

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """The input that holds these files."""
        return b"".join(struct.pack("<I", len(part)) + part for part in parts)

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """One file changed, inside its own container where it has one."""
        parts = self.parts(data)
        place = rng.randrange(len(parts))
        within = dict(self.inner).get(self.names[place])
        if within is not None and rng.random() < 0.8:
            parts[place] = within.changed(parts[place], change, rng)
        else:
            parts[place] = change(parts[place])
        return self.joined(parts)


class Archive:
    """A zip archive, of npy files or gzipped tables or anything else."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """One member changed: its name, its header, or its content."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        place = rng.randrange(len(members))
        name, content = members[place]
        if rng.random() < 0.05:
            name = change(name.encode()).decode("latin1")
        elif content.startswith(b"\x93NUMPY"):
            content = _changed_array(content, change, rng)
        elif content.startswith(b"\x1f\x8b"):
            content = gzip.compress(change(gzip.decompress(content)), 1, mtime=0)
        else:
            content = change(content)
        members[place] = name, content
        if rng.random() < 0.03:
            members.append(rng.choice(members))
        made = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(made, "w", method) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content, method)
        return made.getvalue()


class Array:
    """An npy file."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """Its header or its values changed."""
        return _changed_array(data, change, rng)


_TYPES = ("<i8", "<i4", ">i4", "<u8", "|u1", "|b1", "<f4", "<f8", ">f8", "<f2", "<U3", "|S5", "<c8")


def _changed_array(content: bytes, change: Change, rng: random.Random) -> bytes:
    (length,) = struct.unpack("<H", content[8:10])
    header, values = content[10 : 10 + length], content[10 + length :]
    kind = rng.random()
    if kind < 0.15:
        header = change(header)
    elif kind < 0.35:
        # A header that fits the bytes, of another type or shape.
        told = ast.literal_eval(header.decode("latin1"))
        told["descr"] = rng.choice((told["descr"], *_TYPES))
        width = int("".join(filter(str.isdigit, told["descr"])) or 1)
        width *= 4 if "U" in told["descr"] else 1
        count = max(0, len(values) // max(1, width))
        shapes = [(count,), (1, count), (count, 1), (count // 2, 2)]
        told["shape"] = rng.choice(shapes) if rng.random() < 0.5 else told["shape"]
        values = values[: math.prod(told["shape"]) * width]
        header = repr(told).encode()
    else:
        values = change(values)
        if rng.random() < 0.8:
            # As many bytes as before: the shape still fits.
            values = values[: len(content) - 10 - length].ljust(len(content) - 10 - length, b"\0")
    header = header.rstrip()[:60000] + b"\n"
    return content[:8] + struct.pack("<H", len(header)) + header + values


_WIDTHS = {
    "F64": 8,
    "I64": 8,
    "F32": 4,
    "I32": 4,
    "F16": 2,
    "BF16": 2,
    "I16": 2,
    "U8": 1,
    "BOOL": 1,
}


MOST_PADDING = 2**18


class Safetensors:
    """A safetensors file: texts about it, and tensors."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """A text, a type, a shape or the numbers of a tensor changed; offsets fit again."""
        length = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        told = header.pop("__metadata__", {})
        tensors = {
            name: (one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
            for name, one in header.items()
        }
        if told and rng.random() < 0.4:
            key = rng.choice(sorted(told))
            told[key] = change(told[key].encode()).decode("utf-8", "replace")
        elif tensors:
            self._change_tensor(tensors, change, rng)
        return self._joined(told, tensors)

    def _change_tensor(
        self, tensors: dict[str, tuple[str, list[int], bytes]], change: Change, rng: random.Random
    ) -> None:
        name = rng.choice(sorted(tensors))
        kind, shape, values = tensors[name]
        how = rng.random()
        if how < 0.1:
            kind = rng.choice(sorted(_WIDTHS))
        elif how < 0.3:
            shape = [max(0, size + rng.choice((-1, 0, 1))) for size in shape]
            shape = rng.choice((shape, shape[:-1], [*shape, 1], shape[::-1]))
        elif how < 0.35:
            del tensors[name]
            name = change(name.encode()).decode("utf-8", "replace")
        else:
            values = change(values)
        tensors[name] = kind, shape, values

    def _joined(
        self, told: dict[str, str], tensors: dict[str, tuple[str, list[int], bytes]]
    ) -> bytes:
        header: dict[str, object] = {"__metadata__": told}
        body = b""
        for name, (kind, shape, values) in tensors.items():
            size = math.prod(shape) * _WIDTHS[kind]
            # A shape may claim anything; what is put behind it stays small.
            fitting = values[:size].ljust(min(size, MOST_PADDING), b"\0")
            header[name] = {
                "dtype": kind,
                "shape": shape,
                "data_offsets": [len(body), len(body) + size],
            }
            body += fitting
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + body


class Lines:
    """A text of lines."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """One line changed, doubled or left out."""
        lines = data.split(b"\n")
        place = rng.randrange(len(lines))
        how = rng.random()
        if how < 0.1:
            lines.insert(place, rng.choice(lines))
        elif how < 0.2 and len(lines) > 1:
            del lines[place]
        else:
            lines[place] = change(lines[place])
        return b"\n".join(lines)


class Database:
    """A SQLite file."""

    def changed(self, data: bytes, change: Change, rng: random.Random) -> bytes:
        """One field of one row changed."""
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(data)
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            filled = [t for t in tables if connection.execute(f'SELECT 1 FROM "{t}"').fetchone()]
            table = rng.choice(filled)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            rows = [row[0] for row in connection.execute(f'SELECT rowid FROM "{table}"')]
            column, row = rng.choice(columns), rng.choice(rows)
            find = f'SELECT "{column}" FROM "{table}" WHERE rowid = ?'
            (value,) = connection.execute(find, (row,)).fetchone()
            raw = change(str(value).encode())
            other = rng.choice((raw, raw.decode("utf-8", "replace"), len(raw), None, -1.5e308))
            connection.execute("PRAGMA ignore_check_constraints = ON")
            update = f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?'
            connection.execute(update, (other, row))
            connection.commit()
            return connection.serialize()
