"""The table features that the guide lists are treated as it says, each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowlake.delta.features import WRITE_FEATURES, validate_known
from rowlake.delta.protocol import READ_FEATURES, Protocol, validate_readable
from rowlake.errors import UnsupportedFeatureError

GUIDE = Path(__file__).parents[3] / "docs" / "delta.md"


def listed() -> dict[str, tuple[str, str, str]]:
    text = GUIDE.read_text()
    rows = re.findall(r"^\| (\S+) \| (readers|writers) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    assert len({name for name, *_ in rows}) == len(rows)
    return {name: (of, read, write) for name, of, read, write in rows}


FEATURES = listed()


def test_the_guide_lists_every_feature_that_is_known():
    assert FEATURES.keys() >= READ_FEATURES | WRITE_FEATURES
    assert {name for name, (of, *_) in FEATURES.items() if of == "readers"} >= READ_FEATURES


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_read_and_written_as_the_guide_says(name):
    of, read, write = FEATURES[name]
    reading = (name,) if of == "readers" else ()
    protocol = Protocol(3, 7, reading, (name,))
    for said, validate in ((read, validate_readable), (write, validate_known)):
        if said.startswith("refused"):
            with pytest.raises(UnsupportedFeatureError, match=name):
                validate(protocol, "t")
        else:
            validate(protocol, "t")


def test_features_of_tomorrow_are_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match="someFeatureOf2030"):
        validate_readable(Protocol(3, 7, ("someFeatureOf2030",), ("someFeatureOf2030",)), "t")
    with pytest.raises(UnsupportedFeatureError, match="someFeatureOf2030"):
        validate_known(Protocol(1, 7, (), ("someFeatureOf2030",)), "t")
