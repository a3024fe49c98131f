"""The notebooks of the docs run from top to bottom, and show HTML where the docs say so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.spark_session import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"
SCREENSHOTS = "ROWLAKE_SCREENSHOTS"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
JVM = "Using incubator modules"  # what Java says as it starts
SHOWN = {
    "quick_start": ["tableName", "rows updated", "History of shop.sales", "small files"],
    "merge": ["├─", "num_inserted_rows", "rows inserted", "2 source rows match one"],
    "change_streams": ["update_postimage", "skipped"],
}


def test_every_notebook_is_run_here() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.timeout(240)
def test_a_notebook_runs(name, tmp_path):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs"
    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    text = str(outputs)
    assert [words for words in SHOWN[name] if words not in text] == []
    assert "text/html" in text
    told = [out.text for out in outputs if out.get("name") == "stderr" and JVM not in out.text]
    assert told == []
    if name == "quick_start" and os.environ.get(SCREENSHOTS):
        take_screenshot(notebook, tmp_path, Path(os.environ[SCREENSHOTS]) / "notebook.png")


def take_screenshot(notebook, folder: Path, image: Path) -> None:
    from nbconvert import HTMLExporter

    page = folder / "notebook.html"
    page.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    program = os.environ.get("ROWLAKE_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    size = ["--hide-scrollbars", "--window-size=1000,2100", f"--screenshot={image}"]
    subprocess.run([program, *flags, *size, page.as_uri()], check=True, timeout=60)
