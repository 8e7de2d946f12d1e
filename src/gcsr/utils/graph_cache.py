"""Results that several steps of one call need, kept as long as their graph is in use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class GraphCache(Generic[T]):
    """Values by graph and key; a graph that is no longer referenced takes its values with it."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[object, dict[Hashable, T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, graph: object, key: Hashable, compute: Callable[[], T]) -> T:
        """The value of ``key``, computed if it is not known; two threads may compute the same one."""
        with self._lock:
            known = self._values.setdefault(graph, {})
        if key not in known:
            known[key] = compute()
        return known[key]
