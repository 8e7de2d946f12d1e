"""Imports point one way, importing is cheap, and every public name is there."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path

import gcsr

SOURCE = Path(gcsr.__file__).parent
# From the bottom up; a package may import those that come before it, and of the strict ones only
# what is listed.
LAYERS = (
    "version",
    "utils",
    "equations",
    "distributed",
    "data",
    "datasets",
    "models",
    "outofcore",
    "training",
    "engines",
    "starts",
    "methods",
    "auto",
    "evaluation",
    "analysis",
    "api",
    "pyg",
    "tuning",
    "benchmarking",
    "paper",
    "reporting",
    "",  # gcsr/__init__.py
    "cli",
    "__main__",
)
STRICT = {
    "utils": set(),
    "equations": {"utils"},
    "distributed": {"utils", "version"},
    "data": {"utils"},
    "datasets": {"data", "utils"},
    "models": {"equations", "utils"},
}


def module_name(path: Path) -> str:
    """``models.gcn`` for models/gcn.py, ``models`` for models/__init__.py."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


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


def wrong_imports() -> Iterator[str]:
    for module, path in MODULES.items():
        package = module.split(".", maxsplit=1)[0]
        below = LAYERS[: LAYERS.index(package)]
        for imported in imports(path):
            other = imported.split(".", maxsplit=1)[0]
            if other != package and other not in STRICT.get(package, below):
                yield f"{module} imports {imported}"


def test_imports_point_one_way():
    assert list(wrong_imports()) == []


def test_modules_do_not_import_in_cycles():
    """Imports inside functions count: one of them would only hide a cycle."""
    graph = {name: imports(path) - {name} for name, path in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_this_test_can_see_an_import(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        "import gcsr.api\nfrom gcsr.models import gcn, MODELS\nfrom gcsr.utils import errors\n"
        "def later():\n    from gcsr.evaluation.protocol import evaluate\n"
        "if TYPE_CHECKING:\n    from gcsr.cli import app\n"
    )
    at_once = {"api", "models.gcn", "models", "utils.errors"}
    assert imports(path, lazy=False) == at_once
    assert imports(path) == at_once | {"evaluation.protocol"}


def test_condensing_never_reads_the_test_set():
    for package in ("engines", "starts", "methods", "auto"):
        for path in (SOURCE / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert "test" not in attributes, path.name


def test_no_code_is_evaluated_and_no_name_is_imported_by_a_star():
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path.name


# Modules that are extras, and those that are slow to import.
EXTRAS = ("optuna", "pyarrow", "ray", "hypothesis", "pytest")
SLOW = ("torch", "scipy", "sklearn", "torch_geometric", "matplotlib", "jinja2")
LOADED = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {extras}:
            raise ImportError(name + " is an extra")
sys.meta_path.insert(0, Refuse())
try:
    {program}
except SystemExit:
    pass
print("loaded:", *[name for name in {slow} if name in sys.modules])
"""


def loaded(program: str) -> set[str]:
    """Slow modules that a program has imported, extras being impossible to import."""
    source = LOADED.format(extras=EXTRAS, slow=SLOW, program=program)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].removeprefix("loaded:").split())


def test_importing_is_light():
    assert loaded("import gcsr") == set()
    # The same check sees torch where it is needed.
    assert loaded("import gcsr; gcsr.Graph") == {"torch", "scipy"}


def test_commands_that_compute_nothing_do_not_import_torch():
    run = "from gcsr.cli.app import main; main({})"
    for arguments in (["--help"], ["condense", "--help"], ["evaluate", "--help"], ["datasets"]):
        assert loaded(run.format(arguments)) == set(), arguments
    for arguments in (["condens"], ["--version"]):
        assert loaded(run.format(arguments)) == set(), arguments
    assert "torch" in loaded(run.format(["methods", "random"]))


def test_showing_a_file_imports_no_pages_and_no_scikit_learn(tmp_path):
    out = tmp_path / "graph.safetensors"
    made = gcsr.condense(gcsr.load("digits"), nodes=10, method="random", progress=False)
    automatic = {"chosen": {"method": "random"}, "candidates": [{"method": "random"}]}
    replace(made, provenance=made.provenance | {"automatic": automatic}).save(out)
    run = f"from gcsr.cli.app import main; main(['inspect', {str(out)!r}])"
    assert loaded(run) == {"torch", "scipy"}


def test_tests_are_collected_without_extras():
    """What needs an extra is skipped without it: nothing at the top of a file imports one."""
    for path in Path(__file__).parent.rglob("*.py"):
        found = set()
        for statement in statements(ast.parse(path.read_text(encoding="utf-8")), lazy=False):
            names = [alias.name for alias in statement.names]
            if isinstance(statement, ast.ImportFrom):
                names = [statement.module or ""]
            found |= {name.split(".")[0] for name in names}
        assert not found & {"atheris", "ogb", "optuna", "pyarrow", "ray", "selenium"}, path.name


def test_everything_public_is_there():
    for name in gcsr.__all__:
        assert getattr(gcsr, name) is not None
        assert name in dir(gcsr)
    assert len(set(gcsr.__all__)) == len(gcsr.__all__)
