"""A maker is known in vendors/ only: no other module names one where that could decide anything.

What people read may name one: comments, docstrings, examples, messages.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hami_mock
from hami_mock.vendors import VENDORS

SOURCE = Path(hami_mock.__file__).parent
MODULES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if not {"vendors", "_proto"} & set(path.relative_to(SOURCE).parts)
]
MAKERS = {vendor.maker for vendor in VENDORS} | {"neuron", "huawei"}
TESTS_OF_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "get", "pop"}


def identifiers(node: ast.AST) -> Iterator[str]:
    """The words of a node that are names, of whatever."""
    for name in ("id", "attr", "name", "arg", "asname", "module"):
        word = getattr(node, name, None)
        if isinstance(word, str):
            yield word


def compared(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that something is compared with, or looked up by."""
    match node:
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.MatchValue():
            return [node.value]
        case ast.Subscript():
            return [node.slice]
        case ast.Dict():
            return [key for key in node.keys if key]
        case ast.Call(func=ast.Attribute(attr=name)) if name in TESTS_OF_TEXT:
            return [*node.args]
    return []


def texts(node: ast.AST) -> Iterator[str]:
    for part in compared(node):
        for each in ast.walk(part):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value


def makers_in(source: str) -> set[str]:
    """The words of a module that name a maker."""
    nodes = list(ast.walk(ast.parse(source)))
    words = {word for node in nodes for word in (*identifiers(node), *texts(node))}
    return {word for word in words if any(maker in word.lower() for maker in MAKERS)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_other_room_knows_a_maker(path: Path) -> None:
    assert makers_in(path.read_text()) == set()


@pytest.mark.parametrize(
    "source",
    [
        "METAX_TYPE = 1",
        "kind.enflame",
        "def ascend_templates(): ...",
        "def read(row, *, is_metax): ...",
        "from hami_mock.vendors import hygon",
        "from hami_mock.vendors.nvidia import A as B",
        "read(is_metax=True)",
        "vendor.maker == 'metax'",
        "name in ('x', 'cambricon.com/vmlu')",
        "name.startswith('Ascend910')",
        "{'vastai': 1}[name]",
        "table['aws.amazon.com/neuron']",
        "match name:\n    case 'biren': ...",
    ],
)
def test_such_a_name_would_be_noticed(source: str) -> None:
    assert makers_in(source)


def test_what_people_read_may_name_one() -> None:
    assert not makers_in('"""As of Metax."""\nexamples = ("fail nvidia/0",)  # of Ascend')
