"""Files of SQL statements with the rows that must be there afterwards.

A file is SQL with directives in its comments; a line `--   …` goes on with the directive above it:

    -- case: a condition that is NULL deletes nothing      the claim, by which a case is known
    -- table: people                                       db.t starts as this layout
    -- table u: stores                                     and db.u as that one
    -- view s: VALUES (1, 'a') AS s(id, name)              a temporary view
    -- set: spark.sql.caseSensitive = true                 a setting of the session
    -- mode: file_deletes                                  the one mode that it is about
    DELETE FROM db.t WHERE age > NULL;                     one or more statements, each ends in `;`
    -- counts: updated 1, deleted 2                        what the last statement returns
    -- rows:                                               all of db.t: column names, then the rows
    --   id | name
    --   1 | ann
    -- rows db.t.branch_b:                                 the same of another table or branch
    -- result:                                             what the last statement returns: a query
    -- error: SchemaMismatchError                          instead of counts and rows
    -- java: it cannot push structs down                   why Java fails or gives other rows

`<snapshot 2>` in a statement is the id of the second snapshot that db.t starts with. In a result,
`db` and `lake` stand for the namespace and the catalog that the case ran in.

A layout is a `-- layout: name` followed by the statements that make db.t.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
KINDS = ("updated", "deleted", "inserted")
_DIRECTIVE = re.compile(r"-- (\w+)(?: ([\w.`]+))?:(?: (.*))?$")
_MORE = re.compile(r"--   (.*)$")


@dataclass(frozen=True)
class Case:
    """One claim: tables, statements, and what must come of them."""

    name: str
    file: str
    tables: dict[str, str]
    views: dict[str, str]
    settings: dict[str, str]
    statements: tuple[str, ...]
    counts: dict[str, int] | None
    rows: dict[str, list[str]]
    error: str | None
    java: str | None = None
    result: list[str] | None = None
    mode: str | None = None

    @property
    def verb(self) -> str:
        """The statement that the case is about, which its file is named after."""
        return self.file.split("_")[0]

    def __str__(self) -> str:
        return re.sub(r"\W+", "_", self.name).strip("_")


@dataclass
class _Block:
    """The lines between two cases: directives in their order, and statements."""

    directives: list[tuple[str, str, list[str]]] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)

    def of(self, kind: str) -> dict[str, list[str]]:
        return {name: lines for found, name, lines in self.directives if found == kind}

    def text(self, kind: str) -> str | None:
        found = self.of(kind)
        return "\n".join(found[""]) if "" in found else None


def load_cases() -> list[Case]:
    """Return the cases of all files."""
    files = sorted((FOLDER / "cases").glob("*.sql"))
    return [case for file in files for case in read_cases(file)]


def load_layouts() -> dict[str, tuple[str, ...]]:
    """Return the statements that make a table, by the name of the layout."""
    blocks = _blocks((FOLDER / "layouts.sql").read_text(), "layout")
    return {str(block.text("layout")): _statements(block) for block in blocks}


def read_cases(file: Path) -> list[Case]:
    """Return the cases of one file, in their order."""
    return [_case(block, file.stem) for block in _blocks(file.read_text(), "case")]


def _blocks(text: str, start: str) -> list[_Block]:
    blocks: list[_Block] = []
    for number, line in enumerate(text.splitlines(), 1):
        directive, more = _DIRECTIVE.match(line), _MORE.match(line)
        if directive:
            kind, name, rest = directive.groups()
            if kind == start:
                blocks.append(_Block())
            blocks[-1].directives.append((kind, name or "", [rest] if rest else []))
        elif more and blocks:
            blocks[-1].directives[-1][2].append(more.group(1))
        elif line.strip() and not line.startswith("--"):
            blocks[-1].sql.append(line)
        elif blocks and line.startswith("--"):
            raise ValueError(f"line {number} is no directive: {line}")
    return blocks


def _statements(block: _Block) -> tuple[str, ...]:
    text = "\n".join(block.sql).strip()
    if not text.endswith(";"):
        raise ValueError(f"the statement does not end in a semicolon: {text}")
    return tuple(part.strip() for part in re.split(r";\s*(?:\n|$)", text) if part.strip())


def _case(block: _Block, file: str) -> Case:
    tables = {name or "t": lines[0] for name, lines in block.of("table").items()}
    return Case(
        name=str(block.text("case")),
        file=file,
        tables=tables,
        views={name: "\n".join(lines) for name, lines in block.of("view").items()},
        settings=dict(line.split(" = ") for lines in block.of("set").values() for line in lines),
        statements=_statements(block),
        counts=_counts(block.text("counts")),
        rows={name or "db.t": lines for name, lines in block.of("rows").items()},
        error=block.text("error"),
        java=block.text("java"),
        result=block.of("result").get(""),
        mode=block.text("mode"),
    )


def _counts(text: str | None) -> dict[str, int] | None:
    if text is None:
        return None
    given = dict(part.split() for part in text.split(", ")) if text != "none" else {}
    if not set(given) <= set(KINDS):
        raise ValueError(f"counts are of {', '.join(KINDS)}: {text}")
    return {kind: int(given.get(kind, 0)) for kind in KINDS}


def text_of_case(case: Case) -> str:
    """Return a case as it stands in its file."""
    lines = [f"-- case: {case.name}"]
    lines += [
        f"-- table{'' if name == 't' else ' ' + name}: {case.tables[name]}" for name in case.tables
    ]
    for name, query in case.views.items():
        first, *more = query.splitlines()
        lines += [f"-- view {name}: {first}", *(f"--   {line}" for line in more)]
    if case.settings:
        first, *others = [f"{key} = {value}" for key, value in case.settings.items()]
        lines += [f"-- set: {first}", *(f"--   {line}" for line in others)]
    if case.mode is not None:
        lines.append(f"-- mode: {case.mode}")
    lines += [f"{statement};" for statement in case.statements]
    if case.java is not None:
        lines.append(f"-- java: {case.java}")
    if case.error is not None:
        return "\n".join([*lines, f"-- error: {case.error}", ""])
    if case.counts is not None:
        given = [f"{kind} {count}" for kind, count in case.counts.items() if count]
        lines.append(f"-- counts: {', '.join(given) or 'none'}")
    if case.result is not None:
        lines += ["-- result:", *(f"--   {row}" for row in case.result)]
    for name, rows in case.rows.items():
        lines += [
            f"-- rows{'' if name == 'db.t' else ' ' + name}:",
            *(f"--   {row}" for row in rows),
        ]
    return "\n".join([*lines, ""])
