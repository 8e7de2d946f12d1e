"""The judge of trials trains for a few epochs only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tune_helpers import QUICK

from gcsr.engines import iterates as select


@pytest.fixture(autouse=True, scope="module")
def quick_judge() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(select.QuickScore.score.__kwdefaults__, "recipe", QUICK)
        yield
