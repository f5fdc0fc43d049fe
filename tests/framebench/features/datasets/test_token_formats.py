"""Tokens in formats of Megatron, NVIDIA and DLPerf, and word pieces; with planted mistakes.
Covers reading, refusals, skipped records, and the inputs of BERT and ELECTRA."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from framebench.features.datasets import record_files, sequences
from harness.adapter import Mismatch
from harness.loader import LoadedTokens, examples, records
from harness.samples import folder, masking, recorded_tokens, tokens
from harness.samples.folder import REFUSE, SKIP, TRAIN, VALIDATION, BadData
from harness.samples.masking import BERT, ELECTRA, RUNNING, MaskingPlan

from ....frameworks.models import model_config_of
from ....harness.loader.numpy_tokens import NumpyTokenLoader

SEED, LENGTH = 5, sequences.LENGTH
RECORDS = ("bert", "electra", "ofrecord")
PART = "train-00000-of-00001.tfrecord"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two documents for training and one for validation, in each format."""
    base = tmp_path_factory.mktemp("made")
    for form in sequences.FORMATS:
        sequences.make(base / form, 10_000, SEED, form)
    return {form: base / form for form in sequences.FORMATS}


@pytest.fixture(autouse=True)
def another_process() -> None:
    """Clear the cache of records' positions, as in a new process."""
    records.frames_of.cache_clear()


@pytest.fixture
def copied(made: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a data set, to be spoiled."""

    def copy(form: str) -> Path:
        return Path(shutil.copytree(made[form], tmp_path / form))

    return copy


def scanned(root: Path, bad: str = REFUSE, most: int = tokens.NO_LIMIT) -> tokens.Tokens:
    folder = root.parent / f"own-{root.name}"
    folder.mkdir(exist_ok=True)
    return tokens.scan(str(root), TRAIN, bad, str(folder), most)


def loaded(actual: tokens.Tokens, form: str, batch: int = 4, number: int = 0) -> Any:
    """Return all rows that a loader gives in an epoch."""
    flags, beyond = (0, 1) if form == RUNNING else (masking.MARKS, 0)
    loads = tokens.loads(
        actual, VALIDATION, number, SEED, 0, 1, LENGTH - flags, batch, 0, beyond=beyond
    )
    tokens.checked(NumpyTokenLoader(), loads, actual.vocabulary)
    return np.concatenate([token.tokens for token in NumpyTokenLoader().load_tokens(loads)])


def batch_of(root: Path, form: str, seed: int = 1) -> dict[str, Any]:
    actual = scanned(root)
    expected = MaskingPlan(form, LENGTH, 20)
    masking.check(actual, expected, {"mask_token": 103})
    return masking.batch_of(loaded(actual, form), actual, expected, np.random.RandomState(seed))


# ---- reading ------------------------------------------------------------------------------------


def test_a_tokenizer_makes_of_texts_what_megatron_has(made: dict[str, Path]) -> None:
    text, indexed = scanned(made["wordpiece"]), scanned(made["megatron"])
    assert text.tokenizer == "WordPiece, cased"
    assert text.length == indexed.length == 2 * 4096
    assert text.vocabulary == indexed.vocabulary > 5000
    assert Path(text.path).read_bytes() == Path(indexed.path).read_bytes()
    assert indexed.path == str(made["megatron"] / "train.bin"), "mapped where it lies"
    assert np.array_equal(loaded(text, RUNNING), loaded(indexed, RUNNING))


@pytest.mark.parametrize(
    ("code", "dtype"), [(1, "u1"), (3, "<i2"), (4, "<i4"), (5, "<i8"), (8, "<u2")]
)
def test_megatron_has_tokens_of_several_types(tmp_path: Path, code: int, dtype: str) -> None:
    numbers = np.arange(100).astype(dtype)
    (tmp_path / "train_text_document.bin").write_bytes(numbers.tobytes())
    lengths = np.array([60, 0, 40])
    index = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, 3, 3) + lengths.astype("<i4").tobytes()
    index += (numbers.itemsize * np.array([0, 60, 60])).astype("<i8").tobytes()
    index += np.array([0, 2, 3]).astype("<i8").tobytes()
    (tmp_path / "train_text_document.idx").write_bytes(index)
    actual = scanned(tmp_path)
    assert (actual.length, actual.vocabulary, actual.format) == (100, 100, "megatron")
    loads = tokens.loads(actual, VALIDATION, 0, SEED, 0, 1, 9, 2, 0)
    assert next(NumpyTokenLoader().load_tokens(loads)).tokens.tolist() == [
        [*range(10)],
        [*range(9, 19)],
    ]


@pytest.mark.parametrize("form", RECORDS)
def test_records_have_what_was_written(made: dict[str, Path], form: str) -> None:
    actual = scanned(made[form])
    assert actual.records is not None
    assert (actual.records.length, len(actual.records.paths)) == (128, 2 * 33)
    rows = loaded(actual, ELECTRA if form == "electra" else BERT)
    own = recorded_tokens.columns(rows, actual.records.features)
    assert {*own} == {
        *recorded_tokens.PLAIN,
        *(() if form == "electra" else recorded_tokens.MASKED),
    }
    assert (own["input_ids"][:, 0] == 101).all()
    assert (own["input_mask"].sum(axis=1)[[0, 32]] == [128, 99]).all(), "the last is a short one"
    assert form == "electra" or own["next_sentence_labels"].sum() > 10
    bert = loaded(scanned(made["bert"]), BERT)
    assert form != "ofrecord" or np.array_equal(rows, bert), "the same numbers in both formats"


def test_numbers_of_any_size_are_unpacked() -> None:
    numbers = [0, 1, 127, 128, 30521, 2**31 - 1, 2**35, 2**62]
    assert examples.varints(b"".join(map(record_files.varint, numbers))).tolist() == numbers
    assert examples.varints(b"\xff" * 9 + b"\x01").tolist() == [-1]
    for cut in (b"\x80", b"\x01\xff", b"\xff" * 11):
        with pytest.raises(ValueError, match="no features"):
            examples.varints(cut)
    single = b"".join(b"\x08" + record_files.varint(entry) for entry in (3, 300))  # not packed
    feature = record_files.named({"a": record_files.field(3, single)})
    content = record_files.field(1, feature)
    assert examples.of_tensorflow(content)["a"].tolist() == [3, 300]


# ---- inputs of BERT and ELECTRA -----------------------------------------------------------------


@pytest.mark.parametrize("form", ["wordpiece", "megatron", "bert", "ofrecord"])
def test_hidden_words_are_asked_for(made: dict[str, Path], form: str) -> None:
    batch = batch_of(made[form], BERT)
    ids, positions = batch["token_ids"], batch["masked_positions"]
    rows = np.arange(len(ids))[:, None]
    shown, labels = ids[rows, positions], batch["masked_labels"]
    assert {str(array.dtype) for array in batch.values()} == {"int64"}
    assert positions.shape == labels.shape == (len(ids), 20)
    assert not np.isin(labels, [0, 101, 102]).any()
    counts = [(shown == 103).mean(), (shown == labels).mean()]
    assert counts == pytest.approx([0.8, 0.1], abs=0.05)
    assert 0.2 < batch["next_sentence_labels"].mean() < 0.8
    assert (batch["segment_ids"][:, 0] == 0).all()
    assert (batch["segment_ids"].max(axis=1) == 1).all()
    # only the same seed repeats
    again, other = batch_of(made[form], BERT), batch_of(made[form], BERT, seed=2)
    assert all(np.array_equal(batch[name], again[name]) for name in batch)
    drawn = not np.array_equal(batch["masked_positions"], other["masked_positions"])
    assert drawn == (form in ("wordpiece", "megatron")), "records have their own"


def test_the_second_part_goes_on_or_is_that_of_another(made: dict[str, Path]) -> None:
    actual = scanned(made["megatron"])
    rows = loaded(actual, BERT)
    batch = masking.batch_of(rows, actual, MaskingPlan(BERT, LENGTH, 1), np.random.RandomState(1))
    ids = batch["token_ids"].copy()
    np.put_along_axis(ids, batch["masked_positions"], batch["masked_labels"], axis=1)
    for number, label in enumerate(batch["next_sentence_labels"]):
        follows = rows[(number + label) % len(rows)]
        expected = [101, *rows[number][:63], 102, *follows[63:], 102]
        assert ids[number].tolist() == expected, f"sequence {number}, label {label}"
    single = masking.batch_of(
        rows[:1], actual, MaskingPlan(BERT, LENGTH, 1), np.random.RandomState(1)
    )
    assert single["next_sentence_labels"].tolist() == [0], "there is no other"


def test_electra_is_given_the_words_that_bert_hides(made: dict[str, Path]) -> None:
    plain, restored = batch_of(made["electra"], ELECTRA), batch_of(made["bert"], ELECTRA)
    own = recorded_tokens.columns(
        loaded(scanned(made["bert"]), BERT),
        scanned(made["bert"]).records.features,  # type: ignore[union-attr]
    )
    follow = own["next_sentence_labels"][:, 0] == 0
    assert 10 < follow.sum() < 60
    assert np.array_equal(plain["token_ids"][follow], restored["token_ids"][follow])
    assert not np.array_equal(own["input_ids"][follow], restored["token_ids"][follow])
    for batch in (plain, restored):
        positions = batch["masked_positions"]
        counts = np.array([len({*row}) for row in positions.tolist()])
        whole = batch["attention_mask"].all(axis=1)
        assert {*counts[whole]} == {20}, "each once"
        assert {*counts[~whole]} == {15}, "as many of a hundred, with 99 tokens of 128"
        chosen = np.take_along_axis(batch["token_ids"], positions, axis=1)
        assert not np.isin(chosen, [0, 101, 102]).any()
        assert (np.take_along_axis(batch["attention_mask"], positions, axis=1) == 1).all()
        assert 0.75 < (batch["mask_draws"] < 85).mean() < 0.95


@pytest.mark.parametrize(
    ("model", "form"),
    [
        *(("gpt2_small", RUNNING), ("llama_1b", RUNNING), ("bert_base", BERT)),
        *(("electra_base", ELECTRA), ("superbench_gpt2_small", ""), ("superbench_bert_base", "")),
        *(("resnet18", ""), ("span_encoder", "")),
    ],
)
def test_a_model_says_what_it_is_given(model: str, form: str) -> None:
    assert masking.form_of(model_config_of(model)["inputs"]) == form


def test_what_does_not_fit_the_model_is_refused(made: dict[str, Path], tmp_path: Path) -> None:
    root = made["bert"]
    bert, electra, running = (scanned(made[form]) for form in ("bert", "electra", "megatron"))
    no_mask = running._replace(vocab=running.vocab._replace(mask=None))  # type: ignore[union-attr]
    for actual, expected, message in (
        (bert, MaskingPlan(BERT, 64, 10), "sequences of 128 tokens, the case has 64"),
        (
            electra,
            MaskingPlan(BERT, 128, 20),
            "has no masked_lm_positions; BERT is trained with it",
        ),
        (bert, MaskingPlan(BERT, 128, 5), "hide up to 20 words, the model has 5 predictions"),
        (running._replace(vocab=None), MaskingPlan(BERT, 128, 20), "with the vocab.txt"),
        (no_mask, MaskingPlan(BERT, 128, 20), r"which has \[CLS\], \[SEP\] and \[MASK\]"),
        (running, MaskingPlan(BERT, 4, 1), "4 tokens have no room"),
        (
            running,
            MaskingPlan(ELECTRA, 128, 20),
            r"\[MASK\] is 103 in the vocabulary, 7 in the model",
        ),
    ):
        with pytest.raises(Mismatch, match=message):
            masking.check(actual, expected, {"mask_token": 7})
    masked = np.zeros((1, sum(count for _, count in bert.records.features)), np.int64)  # type: ignore[union-attr]
    with pytest.raises(BadData, match="sequence 0 of a batch has no word that can be hidden"):
        masking.batch_of(masked, bert, MaskingPlan(BERT, 128, 20), np.random.RandomState(1))
    assert folder.identity(str(root)) != folder.identity(str(made["electra"]))


# ---- bad files ----------------------------------------------------------------------------------


def _index(root: Path, offset: int, content: bytes) -> None:
    path = root / "train.idx"
    whole = bytearray(path.read_bytes())
    whole[offset : offset + len(content)] = content
    path.write_bytes(whole)


def _cut(root: Path, name: str, count: int) -> None:
    path = root / name
    path.write_bytes(path.read_bytes()[:-count])


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda root: _cut(root, "train.bin", 3), r"train.bin: holds 16381 bytes, where .*16384"),
        (lambda root: _cut(root, "train.idx", 9), r"train.idx: is truncated: 73 bytes, .*take 82"),
        (lambda root: _cut(root, "train.idx", 60), "is truncated: 22 bytes, its head has 34"),
        (lambda root: (root / "train.idx").write_bytes(b""), "begins with b''"),
        (lambda root: _index(root, 0, b"TNTIDX"), r"begins with b'TNTIDX.*an index of Megatron"),
        (lambda root: _index(root, 9, b"\x02"), "is of version 2; read is version 1"),
        (lambda root: _index(root, 17, b"\x07"), r"have the type 7; read are 1 \(uint8\)"),
        (lambda root: _index(root, 17, b"\x04"), "sequence 1 begins at byte 8192, .* end at 16384"),
        (lambda root: _index(root, 34, b"\xff\xff\xff\xff"), "sequence 0 has -1 tokens"),
        (lambda root: _index(root, 38, b"\x00\x20"), "holds 16384 bytes, where .*24576"),
        (lambda root: _index(root, 74, b"\x01"), "documents do not go from sequence 0"),
        (lambda root: (root / "train.bin").unlink(), r"train.bin: No such file"),
        (lambda root: (root / "train.bin").write_bytes(b"\xff" * 16384), "token 0 is 65535, where"),
        (lambda root: (root / "vocab.txt").write_text("[UNK]\n[CLS]\n"), r"has no \[SEP\]"),
        (lambda root: (root / "vocab.txt").write_bytes(b"[UNK]\n\xff"), "line 2, byte 6 is not"),
    ],
)  # fmt: skip
def test_bad_files_of_megatron_are_refused(
    copied: Callable[[str], Path], spoil: Callable[[Path], object], expected: str
) -> None:
    root = copied("megatron")
    spoil(root)
    with pytest.raises(BadData, match=expected):
        scanned(root)


def test_a_token_below_zero_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(np.array([5, -3, 2], "<i4").tobytes())
    index = struct.pack("<9sQBQQiqqq", b"MMIDIDX\0\0", 1, 4, 1, 2, 3, 0, 0, 1)
    (tmp_path / "train.idx").write_bytes(index)
    with pytest.raises(BadData, match="token 1 is -3, below 0"):
        scanned(tmp_path)


def _written(root: Path, change: Callable[[dict[str, list[int]]], object], which: int = 1) -> None:
    """Write the records again, one of them changed."""
    path = root / PART
    contents = [
        records.tfrecord_content(str(path), number)
        for number in range(len(records.frames_of(str(path))[0]))
    ]
    actual = {
        name: entry.tolist() for name, entry in examples.of_tensorflow(contents[which]).items()
    }
    change(actual)
    contents[which] = record_files.of_numbers(actual)
    with path.open("wb") as file:
        for content in contents:
            record_files.write_framed(file, content)


def _flip(root: Path, offset: int) -> None:
    path = root / PART
    whole = bytearray(path.read_bytes())
    whole[offset] ^= 255
    path.write_bytes(whole)


def _no_file(root: Path) -> None:
    (root / PART).unlink()


#: Spoiling of records, the message about it, and the number of skipped records.
SPOILED: list[tuple[Callable[[Path], object], str, int]] = [
    (lambda root: _cut(root, PART, 5), "/65: the file is truncated within the record", 1),
    (lambda root: _flip(root, 0), "/0: its length has a wrong checksum", 66),
    (lambda root: _flip(root, 100), "/0: its content has a wrong checksum", 66),
    (lambda root: _written(root, lambda entry: entry.pop("input_mask")),
     "/1: the record has no input_mask", 1),
    (lambda root: _written(root, lambda entry: entry["input_ids"].append(5)),
     "/1: the record has 129 of input_ids, not 128", 1),
    (lambda root: _written(root, lambda entry: entry["input_ids"].__setitem__(3, 20000)),
     "/1: number 3 of input_ids is 20000, allowed: 0 to ", 1),
    (lambda root: _written(root, lambda entry: entry["masked_lm_positions"].__setitem__(0, 128)),
     "/1: number 0 of masked_lm_positions is 128, allowed: 0 to 127", 1),
    (lambda root: _written(root, lambda entry: entry["segment_ids"].__setitem__(0, 2)),
     "/1: number 0 of segment_ids is 2, allowed: 0 to 1", 1),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "expected", "count"), SPOILED)
def test_a_bad_record_ends_the_run_or_is_counted(
    copied: Callable[[str], Path], spoil: Callable[[Path], object], expected: str, count: int
) -> None:
    root = copied("bert")
    spoil(root)
    records.frames_of.cache_clear()
    with pytest.raises(BadData, match=expected):  # on listing or on reading
        loaded(scanned(root), BERT)
    if count == 66:
        with pytest.raises(BadData, match=f"hold no good record; {PART}{expected}"):
            scanned(root, SKIP)
        return
    actual = scanned(root, SKIP)
    report = tokens.report(actual)
    assert (report["skipped"], report["tokens"]) == (count, 128 * (66 - count))
    assert (
        expected
        in f"{report['skipped_first'][0]['path'][len(PART) :]}: "
        + (report["skipped_first"][0]["reason"])
    )
    assert len(loaded(actual, BERT)) == 66 - count, "all others are fed"


def test_a_record_of_oneflow_that_is_cut_is_refused(copied: Callable[[str], Path]) -> None:
    root = copied("ofrecord")
    _cut(root, "train/part-00000", 3)
    with pytest.raises(BadData, match="part-00000/65: the file is truncated within the record"):
        scanned(root)
    assert len(scanned(root, SKIP).records.paths) == 65  # type: ignore[union-attr]


def test_too_few_records_and_none_at_all_are_refused(
    copied: Callable[[str], Path], tmp_path: Path
) -> None:
    root = copied("bert")
    with pytest.raises(BadData, match=r"66 sequences of 125 for this rank, .* batch of 67"):
        loaded(scanned(root), BERT, batch=67)
    (root / PART).write_bytes(b"")
    records.frames_of.cache_clear()
    with pytest.raises(BadData, match="the file holds no record"):
        scanned(root)
    empty = tmp_path / "empty"
    empty.mkdir()
    for _ in range(2):
        with pytest.raises(BadData, match=r"has neither train.bin with .* nor a folder train"):
            scanned(empty)
        (empty / "val").mkdir(exist_ok=True)
    (empty / "train").mkdir()
    with pytest.raises(BadData, match="holds no text"):
        scanned(empty)
    with pytest.raises(BadData, match="nowhere: No such file"):
        scanned(tmp_path / "nowhere")
    (empty / "train").rmdir()
    (empty / "wiki.hdf5").write_bytes(b"x")
    with pytest.raises(BadData, match=r"wiki.hdf5 is HDF5, which is not read: make a TFRecord"):
        scanned(empty)


def test_records_that_vanish_meanwhile_end_the_run(copied: Callable[[str], Path]) -> None:
    root = copied("electra")
    loads = tokens.loads(scanned(root), TRAIN, 0, SEED, 0, 1, LENGTH, 4, 0)

    def vanishing(batch: Iterator[LoadedTokens]) -> Iterator[LoadedTokens]:
        yield next(batch)
        shutil.rmtree(root)
        yield from batch

    with pytest.raises(BadData, match=r"tfrecord is not there any more; .* behind 4 sequences"):
        list(tokens.batches(NumpyTokenLoader(vanishing), loads))


def test_another_vocabulary_is_another_data_set(copied: Callable[[str], Path]) -> None:
    root = copied("megatron")
    before = folder.identity(str(root))
    with (root / "vocab.txt").open("a") as file:
        file.write("more\n")
    assert folder.identity(str(root)) != before


def test_a_text_that_is_no_utf8_is_refused_or_counted(copied: Callable[[str], Path]) -> None:
    root = copied("wordpiece")
    (root / "train" / "a.txt").write_bytes(b"word\xc3(")
    with pytest.raises(BadData, match=r"train/a.txt: is no UTF-8 at byte 4: .*bad_images: skip"):
        scanned(root)
    actual = scanned(root, SKIP)
    assert (actual.length, len(actual.skipped)) == (2 * 4096, 1)
    assert tokens.report(actual)["skipped_first"][0]["path"] == "train/a.txt"
