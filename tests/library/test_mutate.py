"""The script that plants faults, on a tree of one function; and the list of the book's own faults, which must fit."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
mutate = sys.modules["mutate"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutate)

CODE = "def double(x):\n    return 2 * x\n"
TESTS = "from code_of_it import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
CAUGHT = ("times three | not two", "2 * x", "3 * x")
SURVIVES = ("a sum", "2 * x", "2 + x")  # 2 + 2 = 2 * 2


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "code_of_it.py").write_text(CODE)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    return tmp_path


@pytest.fixture(autouse=True)
def quick_start(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def write(tree, *faults, tests='["tests/test_it.py"]'):
    blocks = [
        f"[[fault]]\nabout = '{about}'\nfile = 'code_of_it.py'\nold = '{old}'\nnew = '{new}'\ntests = {tests}\n"
        for about, old, new in faults
    ]
    (tree / mutate.FAULTS).write_text("\n".join(blocks))


def contents(tree):
    return {path.relative_to(tree): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_caught_and_survived(tree, capsys):
    write(tree, CAUGHT, SURVIVES)
    before = contents(tree)
    assert mutate.main([], tree) == 1
    after = contents(tree)
    report = after.pop(Path(mutate.TABLE)).decode()
    assert after == before  # nothing was planted in place
    assert "1 of 2 were caught" in report.replace("\n", " ")
    first, second = report.splitlines()[-2:]
    assert first.startswith(r"| times three \| not two | `code_of_it.py` | `test_it.py::test_two` |")
    assert second.startswith("| a sum | `code_of_it.py` | **not caught** survived")
    assert "1 of 2 faults caught" in capsys.readouterr().out


def test_all_caught_and_a_choice(tree):
    write(tree, CAUGHT, SURVIVES)
    assert mutate.main(["THREE"], tree) == 0
    assert not (tree / mutate.TABLE).exists()
    assert mutate.main(["nothing of that kind"], tree) == 1


def test_texts_that_do_not_stand_there_once(tree, capsys):
    write(tree, CAUGHT, ("first", "x", "y"), ("second", "4 * x", "y"))
    assert mutate.main([], tree) == 1
    out, err = capsys.readouterr()
    assert "first: the old text stands 2 times in code_of_it.py: 'x'" in err
    assert "second: the old text stands 0 times in code_of_it.py: '4 * x'" in err
    assert not out and not (tree / mutate.TABLE).exists()


def test_an_import_that_fails_proves_nothing(tree, capsys):
    write(tree, ("another name", "def double", "def triple"))
    assert mutate.main(["--processes", "1"], tree) == 1
    problem = "the tests did not run to an end (pytest's exit status 2)"
    assert problem in capsys.readouterr().out
    assert problem in (tree / mutate.TABLE).read_text()


def test_a_fault_without_end(tree, capsys):
    write(tree, ("for ever", "return 2 * x", "while x: pass"))
    fault = mutate.read_faults(tree / mutate.FAULTS)[0]
    outcome = mutate.try_fault(fault, tree, timeout=5)
    assert outcome.caught_by is None and outcome.problem == "the tests took more than 5 s"


def test_tests_that_fail_without_a_fault(tree, capsys):
    (tree / "tests" / "test_it.py").write_text(TESTS.replace("== 4", "== 5"))
    write(tree, CAUGHT)
    assert mutate.main([], tree) == 1
    assert "the tests fail without a fault: tests/test_it.py::test_two" in capsys.readouterr().err
    assert not (tree / mutate.TABLE).exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[fault]]\nabout = 'x'\n", "fault 1 [(]x[)]: the fields are"),
        ("[[fault]]\nabout='x'\nfile='f'\nold='a'\nnew='a'\ntests=['t']\n", "old and new are the same"),
        ("[[fault]]\nabout='x'\nfile='f'\nold='a'\nnew='b'\ntests='t'\n", "tests must be a list"),
        ("[[fault]]\nabout='x'\nfile='f'\nold='a'\nnew='b'\ntests=[]\n", "tests must be a list"),
        ("[[fault", "mutations.toml"),
    ],
)
def test_lists_that_cannot_be_read(tree, content, message):
    (tree / mutate.FAULTS).write_text(content)
    with pytest.raises(mutate.MutationError, match=message):
        mutate.read_faults(tree / mutate.FAULTS)


def test_no_list(tree, capsys):
    assert mutate.main([], tree) == 1
    assert "mutations.toml" in capsys.readouterr().err


def test_a_file_outside_the_tree(tree):
    fault = mutate.Fault("outside", "../code.py", "a", "b", ("tests",))
    (tree.parent / "code.py").write_text("a")
    with pytest.raises(mutate.MutationError, match="there is no"):
        mutate.plant(fault, tree)


def test_the_faults_of_the_book_fit_its_code():
    """Whoever changes a line that a fault names changes the fault with it, and runs the script."""
    faults = mutate.read_faults(ROOT / mutate.FAULTS)
    assert len({fault.about for fault in faults}) == len(faults)
    for fault in faults:
        mutate.plant(fault, ROOT)
        assert all((ROOT / test.partition("::")[0]).exists() for test in fault.tests), fault.tests
