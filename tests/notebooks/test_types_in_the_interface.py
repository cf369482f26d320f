"""The page of the library's interface is also built where torch is not installed, and so cannot be asked for a type."""

import ast
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent


def annotations(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            arguments += [argument for argument in (node.args.vararg, node.args.kwarg) if argument]
            yield from filter(None, [node.returns, *(argument.annotation for argument in arguments)])


def test_types_of_other_libraries_are_not_looked_up():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    rules = [rule for kind, rule in config["sphinx"]["config"]["nitpick_ignore_regex"] if kind == "py:class"]
    names = {
        ast.unparse(part)
        for path in (ROOT / "bertlib").rglob("*.py")
        for annotation in annotations(ast.parse(path.read_text(encoding="utf-8")))
        for part in ast.walk(annotation)
        if isinstance(part, ast.Attribute)
    }
    assert "nn.Module" in names and "torch.device" in names
    assert [name for name in sorted(names) if not any(re.fullmatch(rule, name) for rule in rules)] == []
