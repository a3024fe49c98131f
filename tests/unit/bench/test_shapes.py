from bench.cases.shapes import COLUMNS, SHAPES, merge_text, shape_columns

NAMED = {shape.name: shape for shape in SHAPES}


def test_expressions_are_split_at_commas_outside_of_brackets():
    found = shape_columns(NAMED["composite_keys"])
    assert found[1] == "date_add(DATE '2020-01-01', CAST(id % 900 AS INT)) AS k2"
    assert [one.rpartition(" ")[2] for one in found] == ["k1", "k2", "k3", "k4", "a", "b", "c"]


def test_a_wide_table_has_200_columns_of_which_three_are_set():
    wide = NAMED["wide"]
    names = [one.rpartition(" ")[2] for one in shape_columns(wide)]
    assert len(names) == len(set(names)) == COLUMNS
    assert set(wide.sets) <= set(names)
    assert merge_text(wide).count(" = s.") == 1 + 3


def test_keys_and_columns_that_are_set_are_columns_of_the_shape():
    for shape in SHAPES:
        names = {one.rpartition(" ")[2] for one in shape_columns(shape)}
        assert {*shape.keys, *shape.sets} <= names, shape.name
