"""WordNet's files, written here in their published format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcsr import datasets
from gcsr.datasets import registry
from gcsr.utils.errors import InputError

LICENSE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
NOUNS, VERBS, ADJECTIVES = 60, 55, 20


def line(offset: int, lexicographer: int, pos: str, pointers: list[str], gloss: str) -> str:
    """A synset of two words, as wndb(5WN) has it."""
    ends = " ".join([f"{len(pointers):03d}", *pointers])
    return f"{offset:08d} {lexicographer:02d} {pos} 02 some_word 0 other 1 {ends} | {gloss}  \n"


def write_dict(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    ends = [
        [f"@ {max(i - 1, 0):08d} n 0", f"+ {i:08d} v 0101", f"= {i:08d} a 0"] for i in range(20)
    ]
    gloss = 'the small Animal; "an unusual phrase"'
    nouns = [line(i, 5, "n", ends[i] if i < 20 else [], gloss) for i in range(NOUNS)]
    pointers = [[f"+ {i:08d} n 0101"] if i < 20 else [] for i in range(VERBS - 1)]
    verbs = [line(i, 38, "v", ends, "move; Travel quickly") for i, ends in enumerate(pointers)]
    # Verbs end with frames, between the pointers and the gloss.
    verbs.append(line(VERBS, 38, "v", [], "01 + 08 00 | travel").replace("| 01 +", "01 +"))
    adjectives = [line(i, 0, "s", [], "a rare quality") for i in range(ADJECTIVES)]
    contents = (nouns, verbs, adjectives, [])
    for name, lines in zip(registry.WORDNET_FILES, contents, strict=True):
        (folder / name).write_text(LICENSE + "".join(lines), encoding="latin-1")
    return folder


def test_synsets_pointers_words_and_lexicographer_files(tmp_path):
    graph = datasets.load("wordnet", write_dict(tmp_path))
    assert graph.num_nodes == NOUNS + VERBS + ADJECTIVES
    # Nineteen noun-noun pairs (a loop is none), 20 noun-verb pairs stored at both ends, 20 adjectives.
    assert graph.num_edges == 2 * (19 + 20 + 20)
    # Stop words, words of examples and words of less than 20 definitions are no features.
    assert graph.num_features == 6  # animal, quality, quickly, rare, small, travel
    assert graph.x.to_dense().sum(0).tolist() == [60, 20, 54, 20, 60, 55]
    # Classes are numbered in the order of the files; that of 20 adjectives is too small.
    assert np.bincount(graph.y.numpy() + 1).tolist() == [20, 60, 55]
    assert [len(part) for part in (graph.train, graph.val, graph.test)] == [57, 28, 30]
    again = datasets.load("wordnet", tmp_path)
    assert again.content_hash == graph.content_hash


def test_installed_files_are_found_unless_a_folder_is_named(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_dict(home / "nltk_data" / "corpora" / "wordnet")
    monkeypatch.setattr(
        registry, "is_file", lambda path: tmp_path in path.parents and path.is_file()
    )
    assert datasets.load("wordnet").num_classes == 2
    sentence = r"^wordnet: its files \(data.noun, .*\) are not in .*empty and cannot"
    with pytest.raises(InputError, match=sentence):
        datasets.load("wordnet", tmp_path / "empty")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "00000000 nonsense\n", r"data.noun: line 62 .*no gloss"),
        (lambda text: text.replace(" 003 @", " 999 @"), "line 2 .*999 pointers"),
        (lambda text: text.replace("n 02", "n zz"), "line 2 is not a synset"),
        (lambda text: text.replace(" 05 n", " 999 n"), "the file 999"),
        (lambda text: text.replace("00000019 v", "99999999 v"), "points to data.verb 99999999"),
        (lambda text: text.replace("00000005 05 n", "00000004 05 n"), "repeats the synset"),
        (lambda text: "", "points to data.noun"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, change, message):
    path = write_dict(tmp_path) / "data.noun"
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=message):
        datasets.load("wordnet", tmp_path)


def test_files_without_synsets_are_one_sentence(tmp_path):
    for name in registry.WORDNET_FILES:
        (tmp_path / name).write_text(LICENSE)
    with pytest.raises(InputError, match="a word in 20 definitions"):
        datasets.load("wordnet", tmp_path)
