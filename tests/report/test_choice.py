"""Signals that need no trees beside F1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prpn.errors import InputError
from prpn.report.choice import choice_table, rank_correlation


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=9, unique=True))
def test_rank_correlation_knows_order_alone(values: list[float]) -> None:
    rising = np.exp(values).tolist()
    if len(set(rising)) == len(values):
        assert rank_correlation(values, rising) == pytest.approx(1)
        assert rank_correlation(values, [-value for value in rising]) == pytest.approx(-1)


def test_equal_values_share_a_rank() -> None:
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(
        np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3, 4])[0, 1]
    )


def test_the_table(tmp_path: Path) -> None:
    f1 = {"one": 10.0, "two": 30.0, "three": 20.0}
    record = {
        "builder": "paper",
        "models": {name: {"held_out_loss": 100 - value} for name, value in f1.items()},
        "systems": {name: {"kim": {"f1": value}} for name, value in f1.items()},
        "agreement": {name: -value for name, value in f1.items()},
        "diagnostics": {name: {"mean_depth": value % 7, "right_overlap": value} for name, value in f1.items()},
    }
    (tmp_path / "choice").mkdir()
    (tmp_path / "choice" / "seeds.json").write_text(json.dumps(record))
    judged = {"models": {name: {"model": {"paper": -abs(value - 20), "unbiased": value}} for name, value in f1.items()}}
    (tmp_path / "choice" / "seeds.judged.json").write_text(json.dumps(judged))
    rows = choice_table(tmp_path).splitlines()
    assert rows[2] == "| 3, `seeds` | lower held-out loss | 1.00 | 30.00 | 30.00 | 20.00 |"
    assert rows[3] == "| 3, `seeds` | more stretches found, same builder | 0.00 | 20.00 | 30.00 | 20.00 |"
    assert rows[4] == "| 3, `seeds` | more stretches found, `unbiased` | 1.00 | 30.00 | 30.00 | 20.00 |"
    assert rows[5] == "| 3, `seeds` | more agreement with the others | -1.00 | 10.00 | 30.00 | 20.00 |"
    judged["models"]["two"]["model"] = {"unbiased": 0.5}
    (tmp_path / "choice" / "seeds.judged.json").write_text(json.dumps(judged))
    with pytest.raises(InputError, match="two was not judged through paper"):
        choice_table(tmp_path)
    (tmp_path / "choice" / "seeds.json").unlink()
    with pytest.raises(InputError, match=r"seeds\.json: no such file"):
        choice_table(tmp_path)
