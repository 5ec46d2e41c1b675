"""numba recompiles a kernel when its own file changes, not when a kernel that it calls from another file does.

So kernels that call each other share a file. The calls across files that remain are listed here: they go to modules
that hardly ever change, and whoever changes one deletes the compiled kernels (CONTRIBUTING.md).
"""

import ast
from functools import cache
from pathlib import Path

import genm
from genm import _typing

ROOT = Path(genm.__file__).parent
DECORATORS = {"kernel", "part"}
STABLE = {
    "_math.lanes",  # vectors of eight numbers
    "_math.elementary",  # exp and log
    "_math.sorting",  # radix sort, buffers that grow
}
OTHERS = {
    ("_math.exact.bound_kernels", "_math.exact.rank_gains"),
    ("_math.exact.line_kernels", "_math.exact.rank_gains"),
    ("_math.few_weights", "_math.linear_algebra"),  # Jacobi's method
}


@cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_kernel(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(
        name.id in DECORATORS for d in node.decorator_list for name in ast.walk(d) if isinstance(name, ast.Name)
    )


@cache
def calls_across_files() -> set[tuple[str, str]]:
    trees = modules()
    kernels = {module: {n.name for n in tree.body if is_kernel(n)} for module, tree in trees.items()}
    lanes = trees["_math.lanes"]
    kernels["_math.lanes"] = {
        n.id for n in ast.walk(lanes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    found = set()
    for module, tree in trees.items():
        imported = {
            alias.asname or alias.name: (n.module.removeprefix("genm."), alias.name)
            for n in tree.body
            if isinstance(n, ast.ImportFrom) and n.module and n.module.startswith("genm.")
            for alias in n.names
        }
        for function in tree.body:
            if not is_kernel(function):
                continue
            for name in ast.walk(function):
                if isinstance(name, ast.Name) and name.id in imported:
                    home, original = imported[name.id]
                    if original in kernels.get(home, set()):
                        found.add((module, home))
    return found


def kernels_that_python_calls() -> set[tuple[str, str]]:
    """Return module and name of every `@kernel` that a function of the package or of a test names."""
    root, tests = modules(), ROOT.parents[1]
    texts = {
        path.as_posix(): path.read_text(encoding="utf-8")
        for folder in ("tests", "benchmarks")
        for path in (tests / folder).rglob("*.py")
    }
    others = {name: ast.parse(text) for name, text in texts.items() if "genm._math" in text}
    found = set()
    for module, tree in {**root, **others}.items():
        imported = {
            alias.asname or alias.name: (n.module.removeprefix("genm."), alias.name)
            for n in ast.walk(tree)
            if isinstance(n, ast.ImportFrom) and n.module
            for alias in n.names
        }
        for node in tree.body:
            if module in root and is_kernel(node):
                continue
            for name in ast.walk(node):
                if isinstance(name, ast.Name):
                    found.add(imported.get(name.id, (module, name.id)))
                if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
                    found.add((".".join(imported.get(name.value.id, ())), name.attr))
    return found


def functions() -> dict[tuple[str, str], ast.FunctionDef]:
    """Return all kernels and parts by module and name."""
    return {
        (module, node.name): node
        for module, tree in modules().items()
        for node in tree.body
        if is_kernel(node) and isinstance(node, ast.FunctionDef)
    }


def test_what_only_kernels_call_is_a_part() -> None:
    """A part has no entry point for Python, which takes a third of the time to compile."""
    kernels = {
        place
        for place, function in functions().items()
        if any(ast.unparse(d).startswith("kernel") for d in function.decorator_list)
    }
    assert len(kernels) > 50
    assert kernels - kernels_that_python_calls() == set()


ARRAYS = {"NDArray", "Owners", *(name for name in vars(_typing) if name[0].isupper())}


def makes_arrays(function: ast.FunctionDef) -> bool:
    said = {keyword.arg for d in function.decorator_list if isinstance(d, ast.Call) for keyword in d.keywords}
    return "makes_arrays" in said


def names_of_arrays() -> set[str]:
    """Return the names of types that are arrays, or named tuples that hold some."""
    tuples = [
        node
        for tree in modules().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} == {"NamedTuple"}
    ]
    found, before = set(ARRAYS), set[str]()
    while found != before:
        before = set(found)
        found |= {node.name for node in tuples if names_in(node) & before}
    return found


def names_in(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def returning_arrays() -> set[tuple[str, str]]:
    arrays = names_of_arrays()
    found = {
        place
        for place, function in functions().items()
        if function.returns is not None and names_in(function.returns) & arrays
    }
    assert len(found) > 5
    return found


def test_a_kernel_that_returns_arrays_counts_references() -> None:
    """Its caller would free an array that it was only lent."""
    assert {place for place in returning_arrays() if not makes_arrays(functions()[place])} == set()


def test_what_calls_a_part_that_returns_arrays_counts_references() -> None:
    """Nobody would free them."""
    parts = {name for _, name in returning_arrays()}
    assert {
        place
        for place, function in functions().items()
        if not makes_arrays(function)
        if any(
            isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in parts
            for call in ast.walk(function)
        )
    } == set()


def test_kernels_that_call_each_other_share_a_file() -> None:
    assert {edge for edge in calls_across_files() if edge[1] not in STABLE} == OTHERS


def test_stable_kernels_call_only_stable_ones() -> None:
    assert all(callee in STABLE for caller, callee in calls_across_files() if caller in STABLE)
