import pyarrow.parquet as pq

from bench import data


def test_the_same_size_gives_the_same_rows(tmp_path):
    first = pq.read_table(data.store_sales(5_000, tmp_path / "a"))
    again = pq.read_table(data.store_sales(5_000, tmp_path / "b"))
    assert first.equals(again)
    first.validate(full=True)
    assert first.schema.names == data.SCHEMA.names


def test_ticket_and_item_are_a_key_and_ten_rows_share_a_ticket(tmp_path):
    rows = pq.read_table(data.store_sales(20_000, tmp_path))
    keys = rows.group_by(["ss_ticket_number", "ss_item_sk"]).aggregate([])
    tickets = rows.group_by("ss_ticket_number").aggregate([])
    assert keys.num_rows == 20_000
    assert tickets.num_rows == 2_000


def test_negative_money_survives(tmp_path):
    rows = pq.read_table(data.store_sales(5_000, tmp_path))
    profits = rows["ss_net_profit"].to_pylist()
    assert min(profits) < 0 < max(profits)
    assert max(abs(profit) for profit in profits) < 100_000


def test_finished_data_is_not_made_again(tmp_path):
    folder = data.store_sales(2_000, tmp_path)
    made = (folder / "part-00000.parquet").stat().st_mtime_ns
    data.store_sales(2_000, tmp_path)
    assert (folder / "part-00000.parquet").stat().st_mtime_ns == made
