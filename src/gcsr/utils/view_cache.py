"""Results that several steps of one call need, kept as long as the data is in use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

T = TypeVar("T")


class ViewCache(Generic[T]):
    """Values by graph, validation nodes and key; gone when the graph is no longer referenced."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[object, dict[Hashable, T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, graph: object, validation: object, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of ``key``, computed if it is not known; two threads may compute the same one."""
        with self._lock:
            known = self._values.setdefault(graph, {})
        full = (ref(validation), key)
        if full not in known:
            known[full] = compute()
        return known[full]
