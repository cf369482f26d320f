"""tokenization and normalization: against the reference, the Rust library `tokenizers`, and against values by hand."""

import copy
import gzip
import pickle
import time
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bertlib import datasets, normalization
from bertlib.normalization import chunks, fast_words, normalize, split_words
from bertlib.tokenization import LONGEST_REMEMBERED, SPECIAL_TOKENS, WordPieceTokenizer, word_pieces

SMALL = [*SPECIAL_TOKENS, "a", "b", "##b", "##c", "abc", "##bcd", ".", "'", "##s", "n", "n't", "中", "i", "##\u0307"]


@pytest.fixture(scope="module")
def vocab_file():
    return datasets.fetch("minilm-vocab")


@pytest.fixture(scope="module")
def both(vocab_file):
    """Ours and the reference, by `lowercase`."""
    return {
        lowercase: SimpleNamespace(
            ours=WordPieceTokenizer.from_vocab(vocab_file, lowercase),
            reference=reference(vocab_file, lowercase),
        )
        for lowercase in (True, False)
    }


@pytest.fixture(scope="module")
def uncased(both):
    return both[True].ours


@pytest.fixture
def small():
    return WordPieceTokenizer(SMALL)


def reference(vocab, lowercase):
    vocab = vocab if isinstance(vocab, dict) else str(vocab)
    return BertWordPieceTokenizer(vocab, lowercase=lowercase, strip_accents=None if lowercase else False)


def assert_same(pair, text, second=None):
    """Every field, of the spelled-out form and of the fast one."""
    wanted, ours = pair.reference.encode(text, second), pair.ours.encode(text, second)
    assert ours.tokens == wanted.tokens
    assert ours.ids == wanted.ids
    assert ours.offsets == wanted.offsets
    assert ours.type_ids == wanted.type_ids
    if second is None:
        assert pair.ours.token_ids(text) == wanted.ids[1:-1]


# Against the reference ------------------------------------------------------------------------------------------------


def read(name):
    path = datasets.fetch(name)
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").split("\n")


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("name", ["film-reviews", "wikitext2-valid", "tatoeba-spa", "tatoeba-ukr"])
def test_real_text(both, name, lowercase):
    # A sample of it; `make parity` reads it all. A line of Tatoeba is English, the translation and the authors.
    lines = read(name)
    fast, plain = (lines[:: max(1, len(lines) // many)] for many in (4_000, 400))
    encodings = both[lowercase].reference.encode_batch(fast)
    assert [both[lowercase].ours.token_ids(line) for line in fast] == [encoding.ids[1:-1] for encoding in encodings]
    for line in plain:
        assert_same(both[lowercase], line)


def all_code_points():
    """The basic and the first supplementary plane whole; of the others every block's edges, and a sample."""
    sampled = {*range(0x20000, 0x110000, 613), *range(0xE0000, 0xE0200)}
    for edge in (
        0x2A6DF,
        0x2A700,
        0x2B738,
        0x2B81D,
        0x2B81F,
        0x2B920,
        0x2CEAF,
        0x2F800,
        0x2FA1D,
        0x30000,
        0xF0000,
        0xFFFFD,
    ):
        sampled.update(range(edge - 3, edge + 4))
    sampled.update([0x10FFFC, 0x10FFFD, 0x10FFFE, 0x10FFFF])
    return [*range(0xD800), *range(0xE000, 0x20000), *sorted(sampled)]


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character(both, lowercase):
    normalizer = both[lowercase].reference.normalizer
    pre_tokenizer = both[lowercase].reference.pre_tokenizer
    points = all_code_points()
    for begin in range(0, len(points), 1_000):
        text = " ".join(f"a{chr(point)}b" for point in points[begin : begin + 1_000])
        wanted = normalizer.normalize_str(text)
        ours = normalize(text, lowercase)
        assert "".join(character for character, _ in ours) == wanted
        words = ["".join(character for character, _ in word) for word in split_words(ours)]
        assert words == [word for word, _ in pre_tokenizer.pre_tokenize_str(wanted)]


def test_no_class_depends_on_the_python_it_runs_on():
    # The only categories that are asked of Python are those that Unicode promises never to change.
    private = [*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE)]
    control = [*range(0x20), *range(0x7F, 0xA0)]
    assert [point for point in range(0x110000) if unicodedata.category(chr(point)) == "Co"] == private
    assert [point for point in range(0x110000) if unicodedata.category(chr(point)) == "Cc"] == control


MARKS = (
    "\u0300\u0301\u0307\u0323\u0327\u0328\u0334\u0344\u0345\u05b0\u0f71\u0f72\u0f73\u302e"
    "\U0001d165\U0001d16d\u0898\u07fd"
)
RARE = (
    "İıßΣςσǅÅé한각中\U0002b820\U00020000ﬁ①\u1e69\u1ed9\U0001d15e\u00ad\u200b\u200d\ufeff\ufffd\ue000"
    "\x00\x1c\x85\x0b\u2028 \t\n\xa0\u3000"
)
ASCII = "aAbBzZ019 .,'[]#_$^|~-\t\n\r\x00\x0b\x0c\x1c\x1f\x7f"
any_character = st.characters(exclude_categories=["Cs"])
texts = st.lists(
    st.one_of(
        st.text(any_character, max_size=6),
        st.text(st.sampled_from(MARKS + "aé"), max_size=6),
        st.text(st.sampled_from(RARE), max_size=4),
        st.text(st.sampled_from(ASCII), max_size=8),
        st.sampled_from([*SPECIAL_TOKENS, "[mask]", "[MA", "SK]", "##ing", "don't", "unaffable", "x" * 100, "é" * 101]),
    ),
    max_size=6,
).map("".join)


@settings(max_examples=500, deadline=None)
@given(texts, st.booleans())
def test_any_text(both, text, lowercase):
    assert_same(both[lowercase], text)


@settings(max_examples=100, deadline=None)
@given(texts, texts, st.booleans())
def test_any_pair(both, text, second, lowercase):
    assert_same(both[lowercase], text, second)


small_vocabularies = st.lists(st.text("abc", min_size=1, max_size=3), max_size=12).map(
    lambda pieces: list(dict.fromkeys([*SPECIAL_TOKENS, *pieces, *(f"##{piece[::-1]}" for piece in pieces)]))
)


@settings(max_examples=200, deadline=None)
@given(small_vocabularies, st.text("abc .", max_size=20))
def test_any_vocabulary(pieces, text):
    vocab = {piece: number for number, piece in enumerate(pieces)}
    assert_same(SimpleNamespace(ours=WordPieceTokenizer(vocab), reference=reference(vocab, True)), text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 30521), max_size=12), st.booleans())
def test_decode_any_ids(both, ids, skip):
    assert both[True].ours.decode(ids, skip) == both[True].reference.decode(ids, skip)


@pytest.mark.parametrize(
    "text", ["Hello, world! It's 3.5 o'clock; I don't, we've, they're.", "[CLS] a ##b", "étude", ""]
)
def test_decode(both, text):
    for skip in (True, False):
        ids = both[True].ours.encode(text).ids
        assert both[True].ours.decode(ids, skip) == both[True].reference.decode(ids, skip)


strategies = st.sampled_from(["longest_first", "only_first", "only_second"])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(3, 16), strategies)
def test_truncation(both, first, second, max_length, strategy):
    text, pairs = "one " * first, None if second is None else ["two " * second]
    if pairs is None and strategy == "only_second":
        return
    if pairs and max_length == 3 and strategy != "longest_first":
        return  # no room at all: the reference then drops both texts, ours says so, see test_wrong_calls
    theirs = both[True].reference
    theirs.enable_truncation(max_length, strategy=strategy)
    try:
        wanted = theirs.encode(text, *(pairs or []))
    except Exception as error:
        assert "too short" in str(error)
        with pytest.raises(ValueError, match="too short"):
            both[True].ours([text], pairs, truncation=strategy, max_length=max_length)
    else:
        ours = both[True].ours([text], pairs, truncation=strategy, max_length=max_length)
        assert ours["input_ids"].tolist() == [wanted.ids]
        assert ours["token_type_ids"].tolist() == [wanted.type_ids]
    finally:
        theirs.no_truncation()


@pytest.mark.parametrize("length", [None, 12])
def test_padding(both, length):
    theirs = both[True].reference
    theirs.enable_padding(length=length)
    batch = ["a long text, unaffable", "", "short"]
    pairs = ["", "second", "another second"]
    wanted = theirs.encode_batch(list(zip(batch, pairs, strict=True)))
    theirs.no_padding()
    ours = both[True].ours(batch, pairs, padding="max_length" if length else True, max_length=length)
    assert list(ours) == ["input_ids", "attention_mask", "token_type_ids"]
    for name, field in (("input_ids", "ids"), ("attention_mask", "attention_mask"), ("token_type_ids", "type_ids")):
        assert ours[name].dtype == torch.int64
        assert ours[name].tolist() == [getattr(encoding, field) for encoding in wanted]


# By hand --------------------------------------------------------------------------------------------------------------

CORNERS = [  # text, uncased words, (start, end) of each
    ("", [], []),
    (" \t\r\n\xa0\u3000\u2003", [], []),
    ("a b", ["a", "b"], [(0, 1), (2, 3)]),
    ("a\xa0b\u3000c\u2028d\u205fe", ["a", "b", "c", "d", "e"], [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]),
    ("a\x00b\ufffdc\u200bd\xade\ufefff\ue000g", ["abcdefg"], [(0, 13)]),
    ("a\x1cb\x85c\x0bd\x0ce\x1ff", ["abcdef"], [(0, 11)]),  # str.split cuts here
    ("\x00", [], []),
    ("\u0301", [], []),
    ("İstanbul", ["istanbul"], [(0, 8)]),
    ("xİy", ["xiy"], [(0, 3)]),
    ("café", ["cafe"], [(0, 4)]),
    ("cafe\u0301 x", ["cafe", "x"], [(0, 4), (6, 7)]),  # the accent, a character of its own, is no part of the word
    ("\u0301a", ["a"], [(1, 2)]),
    ("ΟΔΟΣ", ["οδοσ"], [(0, 4)]),  # no final sigma
    ("Straße", ["straße"], [(0, 6)]),
    ("ﬁ", ["ﬁ"], [(0, 1)]),  # NFD, not NFKD
    ("한", ["\u1112\u1161\u11ab"], [(0, 1)]),
    ("a中国b", ["a", "中", "国", "b"], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ("ひら", ["ひら"], [(0, 2)]),
    ("\U0002b820\U0002b821", ["\U0002b820\U0002b821"], [(0, 2)]),  # as the reference; Google's script would cut
    ("\U0002b920x", ["\U0002b920", "x"], [(0, 1), (1, 2)]),
    ("2019–2020", ["2019", "–", "2020"], [(0, 4), (4, 5), (5, 9)]),
    ("a_b$c^d`e", ["a", "_", "b", "$", "c", "^", "d", "`", "e"], [(place, place + 1) for place in range(9)]),
    ("©€½", ["©€½"], [(0, 3)]),
    ("«a»…", ["«", "a", "»", "…"], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ("...", [".", ".", "."], [(0, 1), (1, 2), (2, 3)]),
    ("a\U0001f600b", ["a\U0001f600b"], [(0, 3)]),
    ("\u2e4fa", ["\u2e4fa"], [(0, 2)]),  # punctuation since Unicode 12, a letter to the reference
    ("a\ud800b", ["ab"], [(0, 3)]),  # half a surrogate pair, which the reference cannot be given
]


@pytest.mark.parametrize(("text", "words", "offsets"), CORNERS, ids=[ascii(text) for text, _, _ in CORNERS])
def test_corners(both, text, words, offsets):
    found = split_words(normalize(text))
    assert ["".join(character for character, _ in word) for word in found] == words
    assert [(word[0][1], word[-1][1] + 1) for word in found] == offsets
    assert [word for chunk in chunks(text) for word in fast_words(chunk)] == words
    if "\ud800" in text:
        assert both[True].ours.token_ids(text) == both[True].ours.encode(text, add_special_tokens=False).ids
    else:
        for pair in both.values():
            assert_same(pair, text)
            assert_same(pair, f"x {text}[MASK]{text}", text)


def test_cased_keeps_case_and_accents():
    words = split_words(normalize("Café e\u0301 İ", lowercase=False))
    assert ["".join(character for character, _ in word) for word in words] == ["Café", "e\u0301", "İ"]
    assert words[2][0] == ("İ", 8)


def test_accents_are_sorted_and_places_are_not():
    # A dot below (class 220) goes before an acute (class 230); the places stay in order, as in the reference.
    assert normalization.decompose([("e", 0), ("\u0301", 1), ("\u0323", 2)]) == [("e", 0), ("\u0323", 1), ("\u0301", 2)]
    assert normalization.decompose([("é", 0), ("\u0323", 1)]) == [("e", 0), ("\u0323", 1), ("\u0301", 1)]


def test_word_pieces():
    vocab = {piece: number for number, piece in enumerate(SMALL)}
    assert word_pieces("abc", vocab) == ["abc"]
    assert word_pieces("abcd", vocab) == ["[UNK]"]  # greedy takes abc, and nothing goes on with d; a ##bcd would do
    assert word_pieces("abb", vocab) == ["a", "##b", "##b"]
    assert word_pieces("ba", vocab) == ["[UNK]"]
    assert word_pieces("a" + "b" * 99, vocab) == ["a"] + ["##b"] * 99
    assert word_pieces("a" + "b" * 100, vocab) == ["[UNK]"]


def test_encoding_by_hand(small):
    encoding = small.encode("ABC abb.", "a zz")
    assert encoding.tokens == ["[CLS]", "abc", "a", "##b", "##b", ".", "[SEP]", "a", "[UNK]", "[SEP]"]
    assert encoding.ids == [2, 9, 5, 7, 7, 11, 3, 5, 1, 3]
    assert encoding.offsets == [(0, 0), (0, 3), (4, 5), (5, 6), (6, 7), (7, 8), (0, 0), (0, 1), (2, 4), (0, 0)]
    assert encoding.type_ids == [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert len(encoding) == 10
    assert small.encode("a[MASK]b [mask]").tokens == ["[CLS]", "a", "[MASK]", "b", *["[UNK]"] * 3, "[SEP]"]
    assert small.encode("", "").tokens == ["[CLS]", "[SEP]", "[SEP]"]
    assert small.encode("a", "b", add_special_tokens=False).type_ids == [0, 1]


def test_long_words(both):
    for length in (99, 100, 101):
        for letter in "aé中한":
            assert_same(both[True], f"x {letter * length} y")
            assert_same(both[False], f"x {letter * length} y")
    assert both[True].ours.encode("a" * 101).tokens[1:-1] == ["[UNK]"]
    assert both[True].ours.token_ids("x" * 101) == [both[True].ours.unk_token_id]


def test_a_long_word_in_the_vocabulary():
    vocab = {piece: number for number, piece in enumerate([*SPECIAL_TOKENS, "a" * 101, "b" * 100])}
    assert_same(
        SimpleNamespace(ours=WordPieceTokenizer(vocab), reference=reference(vocab, True)), f"{'a' * 101} {'b' * 100}"
    )


def test_the_longest_piece_is_found():
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a" * 20, "##" + "b" * 20])
    assert tokenizer.encode("a" * 20 + "b" * 40).ids == tokenizer("a" * 20 + "b" * 40)["input_ids"][0].tolist()
    assert tokenizer.encode("a" * 20 + "b" * 40).ids == [2, 5, 6, 6, 3]


def test_call_by_hand(small):
    batch = small(["a", "a b ."], padding=True)
    assert batch["input_ids"].tolist() == [[2, 5, 3, 0, 0], [2, 5, 6, 11, 3]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert batch["token_type_ids"].tolist() == [[0] * 5, [0] * 5]
    assert small("a")["input_ids"].tolist() == [[2, 5, 3]]
    assert small("a", "b")["token_type_ids"].tolist() == [[0, 0, 0, 1, 1]]
    assert small(["a b", "b b"])["input_ids"].shape == (2, 4)  # equal lengths need no padding
    cut = small(["a a a a a"], ["b b b b b"], truncation=True, max_length=8)
    assert cut["input_ids"].tolist() == [[2, 5, 5, 3, 6, 6, 6, 3]]
    whole = small(["a b"], padding="max_length", truncation=True, max_length=6)
    assert whole["input_ids"].tolist() == [[2, 5, 6, 3, 0, 0]]
    assert small("a b", truncation=True, max_length=2)["input_ids"].tolist() == [[2, 3]]


def test_padding_uses_the_vocabularys_own_id():
    tokenizer = WordPieceTokenizer(["a", *SPECIAL_TOKENS])
    assert tokenizer(["a", "a a"], padding=True)["input_ids"].tolist() == [[3, 0, 4, 1], [3, 0, 0, 4]]
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.mask_token_id) == (1, 2, 5)


def test_decode_by_hand(small):
    ids = small.encode("abb. n't b's [MASK]").ids
    assert small.decode(ids) == "abb. n ' b '"
    assert small.decode([5, 15, 13]) == "an'ts"
    assert small.decode([5, 7, 8, 11, 3]) == "abc."
    assert small.decode([2, 5, 7, 3, 0], skip_special_tokens=False) == "[CLS] ab [SEP] [PAD]"
    assert small.decode([7, 7]) == "##bb"  # the first keeps its ##
    assert small.decode(torch.tensor([5, 11])) == "a."
    assert small.decode([]) == ""


# The fast form --------------------------------------------------------------------------------------------------------


def test_the_memory_is_capped(vocab_file):
    pieces = vocab_file.read_text(encoding="utf-8").split("\n")[:-1]
    tokenizer = WordPieceTokenizer(pieces, remembered=3)
    text = "the quick brown fox jumps over the quick brown dog " * 3
    wanted = WordPieceTokenizer(pieces).token_ids(text)
    assert tokenizer.token_ids(text) == wanted
    assert 0 < len(tokenizer._memory) <= 3
    tokenizer.token_ids("x" * LONGEST_REMEMBERED)
    assert "x" * LONGEST_REMEMBERED in tokenizer._memory
    tokenizer.token_ids("x" * (LONGEST_REMEMBERED + 1))
    assert "x" * (LONGEST_REMEMBERED + 1) not in tokenizer._memory


def test_what_is_remembered_cannot_be_changed_from_outside(small):
    small.token_ids("a b").append(99)
    small.token_ids("a").append(99)
    assert small.token_ids("a b") == [5, 6]


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a\u0301\u0323" * 50_000,
        "a" + "\u0301\u0323" * 100_000,
        "[" * 100_000,
        "[MASK]" * 20_000,
        "##" * 50_000,
        "\x00" * 300_000,
        "中" * 50_000,
        ("x" * 99 + " ") * 2_000,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_no_text_hangs(uncased, text):
    begin = time.process_time()
    assert uncased.token_ids(text) == uncased.encode(text, add_special_tokens=False).ids
    assert time.process_time() - begin < 20


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=30))  # halves of surrogate pairs, too
def test_no_text_crashes(uncased, text):
    assert uncased.token_ids(text) == uncased.encode(text, add_special_tokens=False).ids
    assert uncased(text)["input_ids"].shape[0] == 1


# Files and errors -----------------------------------------------------------------------------------------------------


def test_vocab_file_round_trip(vocab_file, tmp_path, uncased):
    uncased.save_vocab(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == vocab_file.read_bytes()
    assert len(uncased) == 30522
    assert uncased.vocab["[MASK]"] == uncased.mask_token_id == 103
    assert repr(uncased) == "WordPieceTokenizer(30,522 pieces, lowercase=True)"


def test_vocab_file_of_another_system(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff".encode() + "\r\n".join([*SPECIAL_TOKENS, "a", "\u2028", "\x85"]).encode())
    tokenizer = WordPieceTokenizer.from_vocab(path, lowercase=False)
    assert tokenizer.pieces == [*SPECIAL_TOKENS, "a", "\u2028", "\x85"]
    assert not tokenizer.lowercase


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join([*SPECIAL_TOKENS, "a", "b", "a"]).encode(), r"line 8 is 'a', and so is line 6"),
        ("\n".join([*SPECIAL_TOKENS, "", "b"]).encode(), r"line 6 is empty"),
        ("\n".join([*SPECIAL_TOKENS[:-1], "b"]).encode(), r"special tokens; \[MASK\] missing"),
        (b"", r"line 1 is empty"),
        ("é".encode("latin-1"), r"is not UTF-8"),
    ],
)
def test_bad_vocab_file(tmp_path, content, message):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as raised:
        WordPieceTokenizer.from_vocab(path)
    assert str(path) in str(raised.value)


def test_no_vocab_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*none\.txt; datasets\.fetch\('minilm-vocab'\) is"):
        WordPieceTokenizer.from_vocab(tmp_path / "none.txt")
    for wrong in (5, None, b"vocab.txt", list(SPECIAL_TOKENS)):
        with pytest.raises(TypeError, match="path must be a str or a Path, not a"):
            WordPieceTokenizer.from_vocab(wrong)


@pytest.mark.parametrize(
    ("vocab", "error", "message"),
    [
        ("vocab.txt", TypeError, "not a str; from_vocab reads a file"),
        ({*SPECIAL_TOKENS}, TypeError, "vocab must be a list .* not a set"),
        (None, TypeError, "vocab must be a list .* not a NoneType"),
        (b"a", TypeError, "vocab must be a list .* not a bytes"),
        ([*SPECIAL_TOKENS, 7], TypeError, "vocab must hold strings; 5 is 7"),
        ([*SPECIAL_TOKENS, "a\n"], ValueError, "pieces of one line; 5"),
        ([*SPECIAL_TOKENS, ""], ValueError, "pieces of one line; 5"),
        ([*SPECIAL_TOKENS, "a", "b", "a"], ValueError, "vocab has 'a' twice, as 5 and as 7"),
        (["[PAD]", "a"], ValueError, r"\[UNK\], \[CLS\], \[SEP\], \[MASK\] missing"),
        ({"[PAD]": 0, "[UNK]": 2}, ValueError, "the ids 0 to 1, each once"),
        ({"[PAD]": 0, "[UNK]": "1"}, ValueError, "the ids 0 to 1, each once"),
    ],
)
def test_bad_vocab(vocab, error, message):
    with pytest.raises(error, match=message):
        WordPieceTokenizer(vocab)


def test_a_dictionary_in_any_order(small):
    shuffled = dict(sorted(small.vocab.items()))
    assert WordPieceTokenizer(shuffled).pieces == SMALL


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"texts": 7}, TypeError, "texts must be a str or a list of str, not int"),
        ({"texts": b"a"}, TypeError, "texts must be a str or a list of str, not bytes"),
        ({"texts": ["a", None]}, TypeError, r"texts\[1\] must be a str, not NoneType"),
        ({"texts": ["a"], "pairs": [7]}, TypeError, r"pairs\[0\] must be a str, not int"),
        ({"texts": ["a"], "pairs": 7}, TypeError, "pairs must be a str or a list"),
        ({"texts": []}, ValueError, "texts must hold at least one text"),
        ({"texts": ["a", "b"], "pairs": ["c"]}, ValueError, "as many, not 2 and 1"),
        ({"texts": ["a", "a b"]}, ValueError, "from 3 to 4 tokens.*padding=True"),
        (
            {"texts": "a", "padding": "shortest"},
            ValueError,
            "padding must be True, False or one of longest, max_length",
        ),
        (
            {"texts": "a", "truncation": "first", "max_length": 5},
            ValueError,
            "truncation must be True, False or one of",
        ),
        ({"texts": "a", "truncation": True}, ValueError, "max_length must be given"),
        ({"texts": "a", "padding": "max_length"}, ValueError, "max_length must be given"),
        ({"texts": "a", "max_length": 5}, ValueError, "max_length is used only with"),
        ({"texts": "a", "truncation": True, "max_length": 1}, ValueError, "max_length must be at least 2"),
        (
            {"texts": "a", "pairs": "a", "truncation": True, "max_length": 2},
            ValueError,
            "max_length must be at least 3",
        ),
        ({"texts": "a", "truncation": True, "max_length": 4.0}, TypeError, "max_length must be an integer, not 4.0"),
        ({"texts": "a", "truncation": "only_second", "max_length": 4}, ValueError, "there are no pairs"),
        (
            {"texts": ["a", "a b a"], "padding": "max_length", "max_length": 4},
            ValueError,
            r"texts\[1\] has 5 tokens, more",
        ),
        (
            {"texts": "a", "pairs": "b b b b", "truncation": "only_first", "max_length": 6},
            ValueError,
            r"texts\[0\] is too short.*has 1 tokens and the other 4",
        ),
        (  # of which nothing would be left
            {"texts": "a a", "pairs": "b b b", "truncation": "only_first", "max_length": 6},
            ValueError,
            r"texts\[0\] is too short.*has 2 tokens and the other 3",
        ),
        (
            {"texts": "a a a", "pairs": "b b", "truncation": "only_second", "max_length": 6},
            ValueError,
            r"pairs\[0\] is too short.*has 2 tokens and the other 3",
        ),
        (
            {"texts": "a", "pairs": "b", "truncation": "only_second", "max_length": 3},
            ValueError,
            r"pairs\[0\] is too short.*has 1 tokens and the other 1",
        ),
    ],
)
def test_wrong_calls(small, arguments, error, message):
    with pytest.raises(error, match=message):
        small(**arguments)


def test_other_wrong_arguments(small):
    with pytest.raises(TypeError, match="text must be a str, not list"):
        small.encode(["a"])
    with pytest.raises(TypeError, match="pair must be a str, not int"):
        small.encode("a", 7)
    with pytest.raises(TypeError, match="text must be a str, not bytes"):
        small.token_ids(b"a")
    with pytest.raises(ValueError, match=r"ids\[1\] is 99; the vocabulary has the ids 0 to 18"):
        small.decode([1, 99])
    with pytest.raises(ValueError, match=r"ids\[0\] is -1"):
        small.decode([-1])
    with pytest.raises(TypeError, match=r"ids\[0\] must be an integer, not \[1, 2\]"):
        small.decode(torch.tensor([[1, 2]]))
    for wrong in (5, torch.tensor(5), None):
        with pytest.raises(TypeError, match=r"ids must be a list of ids, not .*; one id goes in a list of its own"):
            small.decode(wrong)
    with pytest.raises(TypeError, match=r"ids\[0\] must be an integer, not True"):
        small.decode([True])
    with pytest.raises(ValueError, match="remembered must be positive, not 0"):
        WordPieceTokenizer(SMALL, remembered=0)
    with pytest.raises(TypeError, match="lowercase must be True or False, not 'false'"):
        WordPieceTokenizer(SMALL, lowercase="false")


def test_numbers_of_numpy(small):
    ids = small("a b a", truncation=True, max_length=np.int64(4))["input_ids"]
    assert ids.tolist() == small("a b a", truncation=True, max_length=4)["input_ids"].tolist()
    assert small.decode(np.array([5, 6])) == small.decode([5, 6])
    assert WordPieceTokenizer({piece: np.int64(number) for number, piece in enumerate(SMALL)}).pieces == SMALL


def test_a_copy_for_another_process(small):
    other = pickle.loads(pickle.dumps(WordPieceTokenizer(SMALL, lowercase=False, remembered=7)))
    assert (other.pieces, other.lowercase, other._memory.capacity) == (SMALL, False, 7)
    assert copy.deepcopy(small).token_ids("abb") == small.token_ids("abb")
