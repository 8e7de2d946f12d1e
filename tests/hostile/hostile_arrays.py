"""Arrays as no program writes them."""

from __future__ import annotations

import struct


def npy(shape: str, values: bytes, kind: str = "'<f4'") -> bytes:
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values
