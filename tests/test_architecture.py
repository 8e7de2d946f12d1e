"""The house: imports point one way, importing is cheap, files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import gcsr

SOURCE = Path(gcsr.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# From the ground up; a room may use the rooms of the floors below its own.
FLOORS = (
    {"errors", "version", "wording"},
    {"capture", "devices", "files", "products", "progress", "untrusted"},
    {"checkpoint", "parallel"},
    {"cluster"},
    {"graph"},
    {"datasets", "views"},
    {"equations"},
    {"models"},
    {"training", "blocks"},
    {"experts"},
    {"stored"},
    {"condensed"},
    {"condense"},
    {"evaluate"},
    {"analyse"},
    {"api"},
    {"tune", "paper", "pyg"},
    {"report", "bench"},
    {""},  # gcsr/__init__.py
    {"cli"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# Rooms that are stricter than their floor.
GROUND = {
    "errors",
    "version",
    "wording",
    "capture",
    "devices",
    "files",
    "products",
    "progress",
    "untrusted",
}
ONLY = {
    "errors": set(),
    "version": set(),
    "wording": set(),
    "progress": set(),
    "products": set(),
    "capture": set(),
    "devices": {"errors"},
    "files": {"errors"},
    "untrusted": {"errors"},
    "cluster": GROUND | {"parallel"},
    "graph": GROUND,
    "datasets": GROUND | {"graph"},
    "checkpoint": {"errors", "files", "untrusted"},
    "views": GROUND | {"checkpoint", "graph"},
    "equations": {"errors"},
    "models": GROUND | {"equations"},
    "blocks": GROUND | {"parallel", "cluster", "graph", "views", "equations", "models"},
    "stored": {"errors", "untrusted"},
    "condensed": GROUND | {"graph", "stored"},
}


def named(path: Path) -> str:
    """``models.gcn`` for models/gcn.py, ``models`` for models/__init__.py."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(path): path for path in FILES}


def statements(tree: ast.AST, *, lazy: bool = True) -> Iterator[ast.stmt]:
    """Imports outside ``if TYPE_CHECKING``; ``lazy`` includes those inside functions."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif lazy or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements(child, lazy=lazy)


def imports(path: Path, *, lazy: bool = True) -> set[str]:
    """Modules of ours that a file imports, as names below ``gcsr``."""
    found = set()
    for statement in statements(ast.parse(path.read_text(encoding="utf-8")), lazy=lazy):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            assert statement.level == 0, f"{path.name} imports relatively"
            base = statement.module or ""
            inner = [f"{base}.{alias.name}" for alias in statement.names]
            names = [name if name.removeprefix("gcsr.") in MODULES else base for name in inner]
        ours = (name for name in names if name == "gcsr" or name.startswith("gcsr."))
        found |= {name.removeprefix("gcsr").removeprefix(".") for name in ours}
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    room = module.split(".", maxsplit=1)[0]
    assert room in FLOOR, f"{room} is a new room: give it a floor in this test"
    for imported in imports(MODULES[module]):
        other = imported.split(".", maxsplit=1)[0]
        if other == room:
            continue
        assert FLOOR[other] < FLOOR[room], f"{module} must not import {imported}"
        if room in ONLY:
            assert other in ONLY[room], f"{module} must not import {imported}"


def test_modules_do_not_import_in_circles():
    graph = {name: imports(path, lazy=False) - {name} for name, path in MODULES.items()}
    # A package's __init__ gathers its own modules, which never import it back.
    assert list(TopologicalSorter(graph).static_order())


def test_this_test_can_see_an_import(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        "import gcsr.views\nfrom gcsr.models import gcn, MODELS\nfrom gcsr import errors\n"
        "def later():\n    from gcsr.evaluate import evaluate\n"
        "if TYPE_CHECKING:\n    from gcsr.cli import app\n"
    )
    assert imports(path, lazy=False) == {"views", "models.gcn", "models", "errors"}
    assert imports(path) == {"views", "models.gcn", "models", "errors", "evaluate"}


def test_condensing_never_reaches_for_the_test_set():
    for path in (SOURCE / "condense").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "test" not in attributes, path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_stay_short_and_plain(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec")


def test_importing_needs_no_extra_and_nothing_slow():
    """Extras are made impossible to import; PyG and plotting are not imported unasked."""
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("optuna", "pyarrow", "ray", "ogb", "hypothesis", "pytest"):
            raise ImportError(f"{name} is an extra")
sys.meta_path.insert(0, Refuse())
import gcsr
print([name for name in ("torch_geometric", "matplotlib", "sklearn", "typer") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


TESTS = sorted(Path(__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_tests_are_collected_without_extras(path):
    """What needs an extra is skipped without it: nothing at the top of a file imports one."""
    found = set()
    for statement in statements(ast.parse(path.read_text(encoding="utf-8")), lazy=False):
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.ImportFrom):
            names = [statement.module or ""]
        found |= {name.split(".")[0] for name in names}
    assert not found & {"atheris", "ogb", "optuna", "pyarrow", "ray", "selenium"}


def test_everything_public_is_there():
    for name in gcsr.__all__:
        assert getattr(gcsr, name) is not None
    assert sorted(gcsr.__all__, key=str.lower) == sorted(set(gcsr.__all__), key=str.lower)
