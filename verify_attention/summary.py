"""What is kept of an array that is too large to store: its shape, range, mean and digest, gathered block by block."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from verify_attention.model import Array

LARGEST = {"auto": 4096.0, "full": np.inf, "summary": 0.0}  # how many numbers an array may have to be kept whole


@dataclass(frozen=True)
class Summary:
    """Shape, smallest, largest, mean, and the sha256 of the little-endian float64 bytes in C order."""

    shape: tuple[int, ...]
    smallest: float
    largest: float
    mean: float
    sha256: str


@dataclass
class Gathering:
    """Puts together an array that comes in blocks, in C order: whole up to `largest` numbers, else summarised."""

    shape: tuple[int, ...]
    largest: float = LARGEST["auto"]
    _count: int = 0
    _parts: list[Array] = field(default_factory=list)
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    _smallest: float = np.inf
    _greatest: float = -np.inf
    _total: float = 0.0

    def add(self, block: Array) -> None:
        """Take the next block."""
        self._count += block.size
        if np.prod(self.shape) <= self.largest:
            self._parts.append(block)
            return
        self._digest.update(np.ascontiguousarray(block, dtype="<f8").tobytes())
        self._smallest = float(np.minimum(self._smallest, block.min()))
        self._greatest = float(np.maximum(self._greatest, block.max()))
        self._total += float(block.sum())

    @property
    def complete(self) -> bool:
        """Whether all blocks have come."""
        return self._count == np.prod(self.shape)

    def result(self) -> Array | Summary:
        """Return the whole array, or the summary of it."""
        if self._parts:
            return np.concatenate([part.reshape(-1) for part in self._parts]).reshape(self.shape)
        mean = self._total / float(np.prod(self.shape))
        return Summary(self.shape, self._smallest, self._greatest, mean, self._digest.hexdigest())


def summarised(array: Array, largest: float = LARGEST["auto"]) -> Array | Summary:
    """Return an array of up to `largest` numbers as it is, else its summary."""
    if array.size <= largest:
        return array
    gathering = Gathering(array.shape, largest)
    gathering.add(array)
    return gathering.result()
