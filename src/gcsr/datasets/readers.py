"""Readers of published file formats."""

from __future__ import annotations

import gzip
import json
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
import scipy.sparse as sp

from gcsr.data.npz import (
    checked_csr,
    load_array,
    load_arrays,
    require_arrays,
    require_features,
    shape_of,
)
from gcsr.datasets.pickles import read_array, read_neighbor_lists
from gcsr.datasets.registry import TRAIN_PER_CLASS, VAL_PER_CLASS, WORDNET_FILES
from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import ALWAYS_BYTES, parsing


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Arrays as the files give them; :meth:`gcsr.Graph.from_arrays` checks and cleans them."""

    x: np.ndarray | sp.csr_array
    edges: np.ndarray | sp.csr_array
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    num_classes: int = 0


def per_class_split(y: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test ids: 20 and 30 random nodes of every class, and the rest.

    Unlabeled nodes (-1) are in none of the three. The same labels and seed give the same split.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(y, kind="stable")  # one pass, however many classes there are
    order = order[y[order] >= 0]
    starts = np.flatnonzero(np.diff(y[order])) + 1
    cuts = [TRAIN_PER_CLASS, TRAIN_PER_CLASS + VAL_PER_CLASS]
    parts = [np.split(rng.permutation(nodes), cuts) for nodes in np.split(order, starts)]
    train, val, test = (np.sort(np.concatenate(part)) for part in zip(*parts, strict=True))
    return train, val, test


def shares_split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test ids: half, a quarter and the rest of the labeled nodes, at random."""
    nodes = np.random.default_rng(0).permutation(np.flatnonzero(y >= 0))
    train, val, test = np.split(nodes, [len(nodes) // 2, len(nodes) // 2 + len(nodes) // 4])
    return np.sort(train), np.sort(val), np.sort(test)


# -- Planetoid: Cora, Citeseer and PubMed with their public split ------------------------------------

VALIDATION_NODES = 500


def read_planetoid(folder: Path, name: str) -> RawGraph:
    """Read the files of ``name``.

    Nodes are ``allx`` and then the test nodes, which the files hold in the order of their index.

    Ids between the test nodes that the index skips (15 in Citeseer) have no features and no
    label: rows of zeros and -1.
    """

    def part(suffix: str) -> Path:
        return folder / f"ind.{name}.{suffix}"

    listed = part("test.index")
    with parsing(f"{listed}: must hold one node id per line"):
        test = np.array(listed.read_bytes().split(), dtype=np.int64)
    require(test.size > 0, f"{listed}: holds no node ids.")
    features, test_features = _sparse(part("allx")), _sparse(part("tx"))
    labels, test_labels = _one_hot(part("ally")), _one_hot(part("ty"))
    train_count = _one_hot(part("y")).shape[0]
    known = features.shape[0]
    consistent = (
        labels.shape[0] == known
        and test_features.shape == (test.size, features.shape[1])
        and test_labels.shape == (test.size, labels.shape[1])
        and _sparse(part("x")).shape == (train_count, features.shape[1])
        and train_count < known
        and int(test.min()) >= known
        and np.unique(test).size == test.size
    )
    require(
        consistent,
        f"{folder}: the files ind.{name}.* must have matching sizes; download them again.",
    )
    # An id far beyond the others would only claim memory: gaps are few in a genuine file.
    nodes = int(test.max()) + 1
    require(
        nodes <= 2 * (known + test.size),
        f"{listed}: must be close to the {known + test.size} nodes, got {nodes - 1}.",
    )
    read = sum(part(suffix).stat().st_size for suffix in ("allx", "tx"))
    # Ids that the index skips take the row of zeros that comes last. Rows are indexed: a product would
    # take memory for every column that a file claims.
    order = np.full(nodes, -1, dtype=np.int64)
    order[:known] = np.arange(known)
    order[test] = known + np.arange(test.size)
    empty = sp.csr_array((1, features.shape[1]), dtype=np.float32)
    x = sp.csr_array(sp.vstack([features, test_features, empty], format="csr")[order])
    require_features(part("allx"), x, read)
    one_hot = np.concatenate([labels, test_labels, np.zeros_like(labels[:1])])[order]
    return RawGraph(
        x=x,
        edges=read_neighbor_lists(part("graph")),
        y=np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1),
        train=np.arange(train_count),
        val=np.arange(train_count, min(train_count + VALIDATION_NODES, known)),
        test=test,
        num_classes=labels.shape[1],
    )


def _sparse(path: Path) -> sp.csr_array:
    matrix = read_array(path)
    require(matrix.ndim == 2, f"{path}: must be a matrix, got shape {matrix.shape}.")
    return sp.csr_array(matrix, dtype=np.float32)


def _one_hot(path: Path) -> np.ndarray:
    labels = read_array(path)
    require(
        isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] > 0,
        f"{path}: must be a matrix with one row of class indicators per node.",
    )
    return np.asarray(labels)


# -- Amazon and Coauthor graphs: npz files of the GNN benchmark that PyG also reads ------------------

# The files also hold names of nodes and words, some of them pickled: never touched.
_ADJACENCY = ("adj_data", "adj_indices", "adj_indptr", "adj_shape")
_ATTRIBUTES = ("attr_data", "attr_indices", "attr_indptr", "attr_shape")
_DENSE_ATTRIBUTES = "attr_matrix"


def read_gnnbench(folder: Path, file: str) -> RawGraph:
    """Read ``file`` in a folder."""
    path = folder / file
    arrays = load_arrays(path, only=(*_ADJACENCY, *_ATTRIBUTES, _DENSE_ATTRIBUTES, "labels"))
    dense = _DENSE_ATTRIBUTES in arrays
    require_arrays(path, arrays, (*_ADJACENCY, "labels", *(() if dense else _ATTRIBUTES)))
    adjacency = checked_csr(path, "adj", arrays, shape_of(path, "adj", arrays))
    y = arrays["labels"]
    require(
        y.ndim == 1 and y.dtype.kind in "iu",
        f"{path}: labels must be one integer class per node, got {y.dtype} of shape {y.shape}.",
    )
    if dense:
        x: np.ndarray | sp.csr_array = arrays[_DENSE_ATTRIBUTES]
        require(
            x.ndim == 2 and x.dtype.kind in "biuf",
            f"{path}: {_DENSE_ATTRIBUTES} must be a matrix of numbers, got {x.dtype} of shape"
            f" {x.shape}.",
        )
    else:
        x = checked_csr(path, "attr", arrays, shape_of(path, "attr", arrays))
        require_features(path, x, path.stat().st_size)
    x = x.astype(np.float32)
    counts = x.data if isinstance(x, sp.csr_array) else x
    counts[counts > 0] = 1  # word counts as word presence: as PyG's reader does
    return RawGraph(x, adjacency, y, *per_class_split(y))


# -- Flickr, Reddit and other graphs in GraphSAINT's four files --------------------------------------

_ROLES = ("tr", "va", "te")


def read_graphsaint(folder: Path) -> RawGraph:
    """Adjacency, features, the class of each node and the role of each node."""
    path = folder / "feats.npy"
    # Reddit's features are a gigabyte of float64: mapped, only the float32 copy takes memory.
    x = load_array(path)
    require(x.ndim == 2, f"{path}: must be a matrix of features, got shape {x.shape}.")
    nodes, path = x.shape[0], folder / "adj_full.npz"
    arrays = load_arrays(path, only=("indptr", "indices", "data"))
    require_arrays(path, arrays, ("indptr", "indices"))
    prefixed = {f"adj_{key}": value for key, value in arrays.items()}
    edges = checked_csr(path, "adj", prefixed, (nodes, nodes))
    y = _labels(folder / "class_map.json", nodes)
    train, val, test = _roles(folder / "role.json")
    return RawGraph(x, edges, y, train, val, test)


def _labels(path: Path, nodes: int) -> np.ndarray:
    classes = _json_object(path)
    try:
        ids = np.array([int(node) for node in classes], dtype=np.int64)
    except (ValueError, OverflowError):
        raise InputError(f"{path}: keys must be node ids.") from None
    require(
        all(_is_whole(label) for label in classes.values()),
        f"{path}: values must be one integer class per node, not several.",
    )
    inside = ids.size == 0 or (int(ids.min()) >= 0 and int(ids.max()) < nodes)
    require(inside, f"{path}: keys must be node ids 0..{nodes - 1}.")
    y = np.full(nodes, -1, dtype=np.int64)
    y[ids] = list(classes.values())
    return y


def _roles(path: Path) -> list[np.ndarray]:
    roles = _json_object(path)
    parts = []
    for role in _ROLES:
        ids = roles.get(role)
        require(
            isinstance(ids, list) and all(_is_whole(node) for node in ids),
            f"{path}: {', '.join(_ROLES)} must be lists of node ids, but {role} is not.",
        )
        parts.append(np.array(ids, dtype=np.int64))
    return parts


def _is_whole(value: object) -> bool:
    """A whole number that an array can hold."""
    return type(value) is int and abs(value) < 2**63


def _json_object(path: Path) -> dict[str, Any]:
    with parsing(f"{path}: not readable JSON"):
        content = json.loads(path.read_bytes())
    require(isinstance(content, dict), f"{path}: must hold a JSON object.")
    return dict(content)


# -- ogbn-arxiv: OGB's gzipped tables, in a folder or still in their zip archive ---------------------

# Tables of numbers compress to a third; a ratio above this is no real dataset.
_MOST_TEXT_PER_BYTE = 16
OGB_PARTS = ("train", "valid", "test")


class OgbFiles:
    """Opens tables by their names below the graph's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_dir():
            found = [file.relative_to(path).as_posix() for file in path.glob("*/**/*.csv.gz")]
            self._names = {name: name for name in found}
            return
        with parsing(f"{path}: not a readable zip archive"), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        # All tables are in one folder, which has the graph's name.
        inner = [name.split("/", 1) for name in names if name.endswith(".csv.gz")]
        self._names = {parts[-1]: "/".join(parts) for parts in inner if len(parts) == 2}

    @contextmanager
    def unpacked(self, name: str) -> Iterator[tuple[TextIO, int]]:
        """The text of a table, and the size in bytes of what it is unpacked from."""
        require(name in self._names, f"{self.path}: {name} is missing.")
        with ExitStack() as stack:
            packed: IO[bytes]
            if self.path.is_dir():
                packed = stack.enter_context((self.path / name).open("rb"))
                size = (self.path / name).stat().st_size
            else:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                info = archive.getinfo(self._names[name])
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("not compressed with deflate")
                packed = stack.enter_context(archive.open(info))
                size = min(info.compress_size, self.path.stat().st_size)
            yield stack.enter_context(gzip.open(packed, "rt", encoding="ascii")), size

    def table(self, name: str, dtype: type, *, bounded: bool = True) -> np.ndarray:
        """A gzipped table of numbers without a header, always as a matrix.

        One that is not ``bounded`` may be empty, as the test nodes are of a graph without any.
        """
        with (
            parsing(f"{self.path}: {name}: not a readable table of numbers"),
            self.unpacked(name) as (text, size),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")  # numpy warns about numbers that are no integers
            if not bounded:
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            most = ALWAYS_BYTES // 32 + _MOST_TEXT_PER_BYTE * size
            lines = _bounded(text, most) if bounded else text
            return np.loadtxt(lines, dtype=dtype, delimiter=",", comments=None, ndmin=2)

    def split(self, part: str) -> str:
        """The name of the table of a part, whatever the split is called."""
        found = [
            name
            for name in self._names
            if name.startswith("split/") and name.endswith(f"/{part}.csv.gz")
        ]
        require(len(found) == 1, f"{self.path}: must have one split with {part}, got {len(found)}.")
        return found[0]


def read_arxiv(folder: Path, archive: str = "") -> RawGraph:
    """Read the tables of ogbn-arxiv, extracted or in an archive in the folder."""
    files = OgbFiles(folder / archive)
    edges = files.table("raw/edge.csv.gz", np.int64)
    x = files.table("raw/node-feat.csv.gz", np.float32)
    lists = ("raw/num-node-list", "raw/num-edge-list", *(f"split/time/{p}" for p in OGB_PARTS))
    nodes, count, train, val, test = (
        files.table(f"{name}.csv.gz", np.int64).reshape(-1) for name in lists
    )
    require(
        (nodes.tolist(), count.tolist()) == ([x.shape[0]], [edges.shape[0]]),
        f"{files.path}: must have one graph of {nodes} nodes and {count} edges, got {x.shape[0]}"
        f" feature rows and {edges.shape[0]} edges.",
    )
    return RawGraph(
        x=x,
        edges=edges.T,
        y=files.table("raw/node-label.csv.gz", np.int64),
        train=train,
        val=val,
        test=test,
    )


def _bounded(text: TextIO, most: int) -> Iterator[str]:
    """The lines of a text; none, or more than so many characters, are an error."""
    started = most
    while line := text.readline(most + 1):
        most -= len(line)
        if most < 0:
            raise ValueError("it unpacks to far more than a table of numbers does")
        yield line
    if most == started:
        raise ValueError("it is empty")


# -- WordNet's own dict files ------------------------------------------------------------------------

# Words of scikit-learn's tokenizer (lowercase, two characters or more) without its English stop words.
LEAST_DEFINITIONS = 20
# A class of fewer synsets is not learned: they have no label.
LEAST_SYNSETS = 50
_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "s": "data.adj", "r": "data.adv"}
_POINTER_FIELDS = 4


def read_wordnet(folder: Path) -> RawGraph:
    """Read ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv`` in a folder.

    Synsets are nodes in the order of the files, pointers are edges without direction, and
    lexicographer files (``noun.animal``, ``verb.motion``, ...) are classes. A feature is 1 where a word
    occurs in the definition, which is the gloss up to its first example.
    Format: https://wordnet.princeton.edu/documentation/wndb5wn.
    """
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - a second to import

    ids: dict[tuple[str, str], int] = {}
    classes, definitions, ends = [], [], []
    for name in WORDNET_FILES:
        for place, line in _lines(folder / name):
            with parsing(f"{place} is not a synset of WordNet"):
                offset, lexicographer, definition, pointers = _synset(line)
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
    with parsing(f"{path}: cannot be read"), path.open(encoding="latin-1") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("  "):
                yield f"{path}: line {number}", line


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


# -- Handwritten digits: bundled with scikit-learn, so they need no download -------------------------

NEIGHBORS = 10


def read_digits(_: Path) -> RawGraph:
    """1,797 images of 8 x 8 pixels, each joined to the ten images nearest to it; no file is read."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - a second to import

    images, labels = load_digits(return_X_y=True)
    # Whole pixel values make distances exact integers, so every machine finds the same neighbors;
    # ties go to the lower id.
    pixels = np.asarray(images).astype(np.int64)
    norms = (pixels * pixels).sum(1)
    distances = norms[:, None] + norms - 2 * pixels @ pixels.T
    np.fill_diagonal(distances, np.iinfo(np.int64).max)
    targets = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBORS].reshape(-1)
    sources = np.repeat(np.arange(len(pixels)), NEIGHBORS)
    edges = np.stack([np.append(sources, targets), np.append(targets, sources)])
    y = np.asarray(labels).astype(np.int64)
    return RawGraph(pixels.astype(np.float32) / 16, edges, y, *per_class_split(y))
