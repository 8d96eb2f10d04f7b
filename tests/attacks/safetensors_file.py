"""A safetensors file as what it is: a header of JSON, and bytes; nothing is checked when it is written.

8 bytes: the header's length    the header: {name: {dtype, shape, data_offsets}, …, "__metadata__": {…}}    bytes
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

METADATA = "__metadata__"
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


@dataclass
class Raw:
    """Arrays by name as (type, shape, bytes), and what the header holds beside them."""

    arrays: dict[str, tuple[str, Any, bytes]]
    metadata: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def read(path: Path) -> Raw:
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
        metadata = header.pop(METADATA, {})
        return Raw(
            {name: (each["dtype"], each["shape"], data[slice(*each["data_offsets"])]) for name, each in header.items()},
            metadata,
        )

    @property
    def json(self) -> Any:
        """The object that this project puts into the header."""
        return json.loads(self.metadata.get("json", "{}"))

    @json.setter
    def json(self, value: Any) -> None:
        self.metadata["json"] = json.dumps(value)

    def array(self, name: str) -> np.ndarray:
        kind, shape, data = self.arrays[name]
        return np.frombuffer(data, _KINDS[kind]).reshape(shape).copy()

    def put(self, name: str, array: np.ndarray) -> None:
        kind = next(kind for kind, code in _KINDS.items() if np.dtype(code) == array.dtype)
        self.arrays[name] = (kind, list(array.shape), array.tobytes())

    def header(self) -> dict[str, Any]:
        header: dict[str, Any] = {METADATA: self.metadata} if self.metadata else {}
        end = 0
        for name, (kind, shape, data) in self.arrays.items():
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end := end + len(data)]}
        return header

    def write(self, path: Path, header: dict[str, Any] | bytes | None = None, length: int | None = None) -> None:
        """Write it, with another header or another length of it if these are given."""
        text = self.header() if header is None else header
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        size = len(text) if length is None else length
        data = b"".join(data for _, _, data in self.arrays.values())
        path.write_bytes(struct.pack("<Q", size) + text + data)


def write_sparse(path: Path, shapes: dict[str, list[int]], metadata: dict[str, Any] | None = None) -> None:
    """A file of zeros that takes no space on the disk, whatever the shapes of its fp32 arrays say."""
    header: dict[str, Any] = {METADATA: metadata} if metadata else {}
    end = 0
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape, dtype=object))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end := end + size]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
