"""One set of versions, wherever it is written down."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def pyproject_pins() -> set[str]:
    extras = PROJECT["optional-dependencies"].values()
    return {pin for group in [PROJECT["dependencies"], *extras] for pin in group}


def test_every_requirement_is_pinned_exactly():
    for pin in pyproject_pins():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*", pin), pin


def test_environment_yml_has_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, nested = environment["dependencies"]
    assert python == f"python{PROJECT['requires-python']}"
    assert pip == "pip"
    assert set(nested["pip"]) == pyproject_pins() | {"--constraint constraints.txt", "--editable ."}


def test_constraints_agree_with_the_pins():
    closure = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", CONSTRAINTS, flags=re.M))
    for pin in pyproject_pins():
        name, _, version = pin.partition("==")
        assert closure[name] == version


def test_version_is_the_same_everywhere():
    import bertlib

    assert bertlib.__version__ == PROJECT["version"]
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_file_names_a_registry():
    hosts = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|deb\.debian\.org|download\.pytorch", re.IGNORECASE)
    skipped = {".git", ".venv", "_build", ".ruff_cache", ".pytest_cache", ".hypothesis", "test_pins.py"}
    for path in ROOT.rglob("*"):
        if path.is_file() and not skipped & set(path.relative_to(ROOT).parts):
            text = path.read_bytes().decode("utf-8", errors="ignore")
            assert not hosts.search(text), path
