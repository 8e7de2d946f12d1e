"""WordNet's own ``dict`` files as a graph.

Synsets are nodes in the order of the files, pointers are edges without direction, and lexicographer
files (``noun.animal``, ``verb.motion``, ...) are classes. A feature is 1 where a word occurs in the
definition, which is the gloss up to its first example.
Format: https://wordnet.princeton.edu/documentation/wndb5wn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcsr.datasets.layout import WORDNET_FILES, RawGraph, shares_split
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import UNREADABLE, reason

# Words of scikit-learn's tokenizer (lowercase, two characters or more) without its English stop words.
LEAST_DEFINITIONS = 20
# A class of fewer synsets is not learned: they have no label.
LEAST_SYNSETS = 50
_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "s": "data.adj", "r": "data.adv"}
_POINTER_FIELDS = 4


def read_wordnet(folder: Path) -> RawGraph:
    """Read ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv`` in a folder."""
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - a second to import

    ids: dict[tuple[str, str], int] = {}
    classes, definitions, ends = [], [], []
    for name in WORDNET_FILES:
        for place, line in _lines(folder / name):
            try:
                offset, lexicographer, definition, pointers = _synset(line)
            except UNREADABLE as error:
                raise InputError(f"{place} is not a synset of WordNet ({reason(error)}).") from None
            require((name, offset) not in ids, f"{place} repeats the synset {offset}.")
            ends += [(len(ids), target, place) for target in pointers]
            ids[name, offset] = len(ids)
            classes.append(lexicographer)
            definitions.append(definition)
    for _, target, place in ends:
        require(target in ids, f"{place} points to {' '.join(target)}, which does not exist.")
    words = CountVectorizer(
        stop_words="english", min_df=LEAST_DEFINITIONS, binary=True, dtype=np.float32
    )
    try:
        x = sp.csr_array(words.fit_transform(definitions))
    except ValueError:  # scikit-learn raises for an empty vocabulary
        raise InputError(
            f"{folder}: must have a word in {LEAST_DEFINITIONS} definitions, got none."
        ) from None
    counts = np.bincount(classes)
    numbers = np.where(counts >= LEAST_SYNSETS, np.cumsum(counts >= LEAST_SYNSETS) - 1, -1)
    y = numbers[classes]
    directed = np.array([(source, ids[target]) for source, target, _ in ends], dtype=np.int64)
    edges = np.concatenate([directed.reshape(-1, 2), directed.reshape(-1, 2)[:, ::-1]]).T
    return RawGraph(x, edges, y, *shares_split(y))


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Where each synset is, for messages, and its line; the license is indented."""
    try:
        with path.open(encoding="latin-1") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.startswith("  "):
                    yield f"{path}: line {number}", line
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)}).") from None


def _synset(line: str) -> tuple[str, int, str, list[tuple[str, str]]]:
    """Offset, lexicographer file, definition, and the file and offset of every pointer's target.

    ``offset lex_filenum ss_type w_cnt (word lex_id)* p_cnt (symbol offset pos source)* | gloss``
    """
    data, bar, gloss = line.partition("|")
    if not bar:
        raise ValueError("it has no gloss")
    offset, lexicographer, _, words, *rest = data.split()
    rest = rest[2 * int(words, 16) :]
    pointers = rest[1 : 1 + _POINTER_FIELDS * int(rest[0])]
    if len(pointers) != _POINTER_FIELDS * int(rest[0]) or not 0 <= int(lexicographer) < 100:
        raise ValueError(f"{rest[0]} pointers are not there, or the file {lexicographer} is not")
    places = zip(pointers[2::_POINTER_FIELDS], pointers[1::_POINTER_FIELDS], strict=True)
    targets = [(_FILES[letter], target) for letter, target in places]
    return offset, int(lexicographer), gloss.split('; "')[0], targets
