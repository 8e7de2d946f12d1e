"""Where units say how far they are and ask what only the process that gave them knows."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any


class Desk:
    """A Ray actor between workers and the process that gave them units.

    Nothing on it is needed twice: where it is lost, Ray begins another one, reports come again and
    questions are asked again.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[int, str], tuple[int, int]] = {}
        self._asked: dict[str, tuple[int, Any, asyncio.Future[Any]]] = {}
        # Names of questions are never those of a desk before this one.
        self._name, self._count = secrets.token_hex(4), 0
        self._new = asyncio.Event()

    async def tell(self, unit: int, stage: str, done: int, total: int) -> None:
        """Unit ``unit`` has done so much of a stage."""
        self._told[unit, stage] = done, total
        self._new.set()

    async def ask(self, unit: int, question: Any) -> Any:
        """Wait for the answer to a question."""
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        self._asked[f"{self._name} {self._count}"] = unit, question, future
        self._new.set()
        return await future

    async def answer(self, name: str, answer: Any) -> None:
        """Give an answer to whoever waits for it."""
        asked = self._asked.pop(name, None)
        if asked is not None and not asked[2].done():
            asked[2].set_result(answer)

    async def news(self) -> tuple[list[tuple[int, str, int, int]], list[tuple[str, int, Any]]]:
        """Reports and questions since the last time; waits until there are some."""
        await self._new.wait()
        self._new.clear()
        told = [(unit, stage, *counts) for (unit, stage), counts in self._told.items()]
        self._told.clear()
        return told, [(name, unit, asked) for name, (unit, asked, _) in self._asked.items()]
