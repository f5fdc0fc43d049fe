"""Questions about a text: best span, SQuAD's scores and files, and initial weights."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tasks
from harness.adapter import Mismatch
from harness.declaration import read_model
from harness.learning import saved, sources
from reference import bert, compute
from tasks import TaskError, reading, span, squad
from tasks.reading import wordpiece

from ...bench import Bench
from ...conftest import ROOT, build_environment
from ..validity import assert_valid

# ---- scores --------------------------------------------------------------------------------------


def test_the_best_span_is_the_best_of_all() -> None:
    random = np.random.RandomState(3)
    scores, allowed = random.standard_normal((20, 9, 2)), random.random_sample((20, 9)) < 0.7
    actual = reading.best(scores, allowed, 4)
    for row, may in enumerate(allowed):
        sums = {
            (i, j): scores[row, i, 0] + scores[row, j, 1]
            for i, j in itertools.product(range(9), repeat=2)
            if may[i] and may[j] and i <= j < i + 4
        }
        assert (actual.first[row], actual.last[row]) == max(sums, key=lambda pair: sums[pair])
        assert actual.value[row] == pytest.approx(max(sums.values()))
    assert reading.best(scores[:1], np.zeros((1, 9), bool), 4).value[0] == -math.inf


# ---- the generated task --------------------------------------------------------------------------


def right(data: dict[str, Any], size: float = 9.0) -> Any:
    """Return outputs that know the answer."""
    collected = np.zeros((*data["token_ids"].shape, 2))
    for side in range(2):
        np.put_along_axis(collected[:, :, side], data["spans"][:, side : side + 1], size, axis=1)
    return collected


def test_generated_questions_are_scored_by_words() -> None:
    data = span.data().held_out
    scored = span.score([right(data)], data)
    assert scored["exact_match"].mean() == scored["f1"].mean() == 1
    assert scored["loss"][0] == pytest.approx(math.log(1 + 23 * math.exp(-9)))
    # planted mistake: predictions lack the last word of each answer
    short = {**data, "spans": np.stack([data["spans"][:, 0]] * 2, axis=1)}
    scored = span.score([right(short)], data)
    several = data["spans"][:, 1] > data["spans"][:, 0]
    assert (scored["exact_match"] == ~several).all()
    assert ((scored["f1"] > 0) & (scored["f1"] < 1))[several].all()
    with pytest.raises(TaskError, match="have 24 tokens, not 32"):
        span.data(32)


def test_data_that_a_model_does_not_take_are_refused() -> None:
    model_config = read_model(str(ROOT / "scripts/models/span_encoder.json"))
    data = span.data().train
    sources.check_inputs(data, model_config["inputs"], 24)
    for name, value, message in (
        ("token_ids", 96, "token_ids of the task are 0 to 96, those of the model 0 to 95"),
        ("spans", 24, "0 to 23"),
        ("segment_ids", -1, "segment_ids"),
    ):
        changed = {**data, name: data[name].copy()}
        changed[name][0, 0] = value
        with pytest.raises(Mismatch, match=message):
            sources.check_inputs(changed, model_config["inputs"], 24)


# ---- WordPiece -----------------------------------------------------------------------------------

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "river", "##s", "in", "is", "of", "cafe", ","),
    *(".", "long", "##est", "?", "a", "thames", "rhine", "which", "1", "##2", "\u4e2d", "un"),
    *("##afford", "##able", "-", "and", "wales", "flows", "london"),
]


def pieces(text: str, *more: str) -> list[tuple[str, str]]:
    known = [*VOCABULARY, *more]
    actual = wordpiece.WordPiece({token: n for n, token in enumerate(known)}).pieces(text)
    return [(known[entry.number], text[entry.begin : entry.end]) for entry in actual]


def test_words_are_cut_into_the_longest_pieces() -> None:
    assert pieces("The rivers") == [("the", "The"), ("river", "river"), ("##s", "s")]
    assert [name for name, _ in pieces("unaffordable")] == ["un", "##afford", "##able"]
    assert pieces("riverx, 12") == [("[UNK]", "riverx"), (",", ","), ("1", "1"), ("##2", "2")]


def test_pieces_lead_back_to_the_characters_of_the_text() -> None:
    """Covers accents, capitals, Chinese, marks, all kinds of blanks, and dropped characters."""
    assert pieces("  Caf\u00e9\u00a0is\t\u4e2d\u4e2d") == [
        *(("cafe", "Caf\u00e9"), ("is", "is"), ("\u4e2d", "\u4e2d"), ("\u4e2d", "\u4e2d")),
    ]
    assert pieces("cafe\u0301.Long-the") == [
        *(("cafe", "cafe"), (".", "."), ("long", "Long"), ("-", "-"), ("the", "the")),
    ]
    assert pieces("ri\u200bver\ufffd") == [("river", "ri\u200bver")]
    assert pieces("the" * 70) == [("[UNK]", "the" * 70)], "longer than a word may be"
    assert pieces("") == []


# ---- the files of SQuAD --------------------------------------------------------------------------

CONTEXTS = (
    "The Thames is a river of London. The rivers of Wales flow in Wales.",
    "The Rhine is long, and the Rhine flows in a long river.",
)


def entry(question: str, context: str, *answers: str, **more: Any) -> dict[str, Any]:
    actual = [{"text": text, "answer_start": context.index(text)} for text in answers]
    return {"id": question, "question": question, "answers": actual, **more}


def content(version: str) -> dict[str, Any]:
    """Return a file with a title, two paragraphs and, in 2.0, an impossible question."""
    first, second = CONTEXTS
    qas = [
        [entry("Which river is in London?", first, "Thames", "The Thames")],
        [entry("Which is long?", second, "Rhine")],
    ]
    if version == "2.0":
        qas[1].append(entry("Which is in Wales?", second, is_impossible=True))
    paragraphs = [{"context": c, "qas": q} for c, q in zip(CONTEXTS, qas, strict=True)]
    return {"version": version, "data": [{"title": "Rivers", "paragraphs": paragraphs}]}


def folder(folder: Path, version: str = "1.1") -> Path:
    for split in ("train", "dev"):
        text = json.dumps(content(version))
        folder.joinpath(f"{split}-v{version}.json").write_text(text)
    folder.joinpath("vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return folder


def test_answers_are_found_again_in_all_windows(tmp_path: Path) -> None:
    """In windows without the answer, the span must be that of the first token."""
    actual = reading.read_questions(str(folder(tmp_path) / "train-v1.1.json"))
    tokens = wordpiece.read(str(tmp_path / "vocab.txt"))
    long = [entry._replace(context=entry.context + " the" * 300) for entry in actual]
    arrays, parts = reading.cut(long, tokens, 80)
    seen = [0, 0]
    for row, part in enumerate(parts):
        first, last = arrays["spans"][row]
        if first:
            entry = long[part.question]
            assert part.text(entry.context, first, last) == entry.answers[0][0]
            seen[part.question] += 1
        ids = arrays["token_ids"][row][arrays["attention_mask"][row] == 1]
        assert [VOCABULARY[n] for n in (ids[0], ids[-1])] == ["[CLS]", "[SEP]"]
        context = ids[arrays["segment_ids"][row][: len(ids)] == 1]
        assert len(context) == len(part.characters) + 1
    assert min(seen) >= 1
    assert sum(seen) < len(parts), "some windows do not have it"
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}


def test_windows_overlap_as_the_authors_cut_them() -> None:
    assert reading.cut_windows(300, 200) == [(0, 200), (128, 300)]
    assert reading.cut_windows(200, 200) == [(0, 200)]
    assert reading.cut_windows(0, 200) == [(0, 0)]
    assert reading.cut_windows(25, 10) == [(0, 10), (10, 20), (20, 25)]


@pytest.mark.parametrize("version", squad.VERSIONS)
def test_squad_is_scored_by_questions(tmp_path: Path, version: str) -> None:
    data = squad.data(96, str(folder(tmp_path, version)))
    model_config = read_model(str(ROOT / "scripts/models/bert_base_squad.json"))
    sources.check_inputs(data.train, model_config["inputs"], 96)
    held_out = data.held_out
    assert data.notes["questions"] == {
        "train": 2 + (version == "2.0"),
        "held_out": tasks.size(held_out),
    }
    assert data.total
    total = data.total(squad.score([right(held_out)], held_out))
    assert (total["f1"], total["exact_match"]) == (1, 1)
    # planted mistakes: an extra word in the first answer, and an answer to the impossible question
    outputs = right(held_out)
    outputs[0] = 0
    first = held_out["spans"][0, 0]
    outputs[0, first, 0] = outputs[0, first + 1, 1] = 9  # "Thames is"
    if version == "2.0":
        outputs[2, 0] = -9
        # "Rhine"; "The" does not count as a word
        outputs[2, held_out["segment_ids"][2].argmax() + 1] = 1
    total = data.total(squad.score([outputs], held_out))
    count = len(outputs)
    assert total["exact_match"] == pytest.approx(1 / count)
    assert total["f1"] == pytest.approx((1 + 2 / 3) / count)


def test_the_best_window_of_a_question_decides(tmp_path: Path) -> None:
    """In 2.0 the smallest no-answer score of all windows, as in the official run_squad.py."""
    path = folder(tmp_path, "2.0") / "dev-v2.0.json"
    actual = reading.read_questions(str(path))[:1]
    parts = [reading.TokenWindow(0, 3, [(4, 10)]), reading.TokenWindow(0, 3, [(0, 3)])]
    scored = {"first": [3, 3], "last": [3, 3], "value": [2.0, 5.0], "none": [9.0, 4.0]}
    text = squad.QuestionWindows(True, actual, parts).predictions(scored)
    assert text == ["The"], "the second window has the better span, and less for none"
    scored["none"] = [9.0, 6.0]
    assert squad.QuestionWindows(True, actual, parts).predictions(scored) == [""]
    assert squad.QuestionWindows(False, actual, parts).predictions(scored) == ["The"]


def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path: Path) -> None:
    path, written = folder(tmp_path) / "train-v1.1.json", content("1.1")
    (answer,) = written["data"][0]["paragraphs"][1]["qas"][0]["answers"]
    for start, message in ((5, "'Rhine' is not at 5, where 'hine ' is"), ("4", "TypeError")):
        answer["answer_start"] = start
        path.write_text(json.dumps(written))
        with pytest.raises(TaskError, match=rf"paragraphs\[1\].qas\[0\]: .*{message}"):
            squad.data(96, str(tmp_path))
    path.write_text(json.dumps(written)[:150])
    with pytest.raises(TaskError, match=r"is not JSON: .*line 1 column"):
        squad.data(96, str(tmp_path))


# ---- whole runs ----------------------------------------------------------------------------------


def write_small_squad(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a small config of ELECTRA for SQuAD with a learning rate; return path and shapes."""
    model_config = compute.reduced(read_model(str(ROOT / "scripts/models/electra_base_squad.json")))
    del model_config["reduced_from"]
    model_config["hyperparameters"]["learning_rate"] = 0.01
    path = folder / "small_squad.json"
    path.write_text(json.dumps(model_config))
    shapes = {name: parameter.shape for name, parameter in bert.parameters(model_config).items()}
    return path, shapes


def test_a_small_model_is_fine_tuned_on_squad_from_weights_that_the_user_has(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, build_environment("pytorch"))
    data = tmp_path / "data"
    data.mkdir()
    folder(data, "2.0")
    path, shapes = write_small_squad(tmp_path)
    random, start = np.random.RandomState(0), tmp_path / "model.safetensors"
    body = {name: shape for name, shape in shapes.items() if not name.startswith("span.")}
    arrays = {name: random.standard_normal(shape) / 9 for name, shape in body.items()}
    saved.write_weights(str(start), arrays)
    done = bench.run(
        framework=ROOT / "scripts/frameworks/pytorch",
        model=path,
        kind="converge",
        batch_per_device=3,
        sequence_length=80,
        parameters={"data": data, "start": start, "epochs": 80, "schedule": "linear"},
    )
    assert done.status == 0, done.record["reason"]
    assert_valid(done.record)
    (rank,) = done.record["ranks"]
    assert rank["task"]["notes"]["questions"] == {"train": 3, "held_out": 3}
    assert rank["task"]["notes"]["version"] == "2.0"
    assert rank["started_from"]["drawn"] == ["span.weight", "span.bias"]
    assert rank["started_from"]["taken"] == len(body)
    assert {*rank["untrained"]} == {"f1", "exact_match", "loss"}
    losses = [epoch["loss"] for epoch in rank["curve"]]
    assert losses[-1] < losses[0] / 2, "it learns its three questions"
    metrics = done.record["metrics"]
    assert metrics["f1"]["value"] == rank["curve"][-1]["held_out"]["f1"] > 0.5


@pytest.mark.parametrize(
    ("prediction", "answer", "exact", "f1"),
    [
        ("Denver Broncos", "The Denver Broncos.", 1, 1),
        ("Broncos Denver", "Denver Broncos", 0, 1),
        ("Denver Denver", "Denver", 0, 2 / 3),
        ("theatre", "the atre", 0, 0),
        ("", "the", 1, 1),
        ("", "cat", 0, 0),
    ],
)
def test_an_answer_is_scored_as_by_the_authors(
    prediction: str, answer: str, exact: int, f1: float
) -> None:
    assert reading.exact_match(prediction, answer) == exact
    assert reading.f1(prediction, answer, impossible=True) == pytest.approx(f1)
