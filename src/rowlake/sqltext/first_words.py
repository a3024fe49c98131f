"""The words that statements of Spark begin with: any other is a mistake, known without Spark."""

from __future__ import annotations

from difflib import get_close_matches

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.cursor import Cursor

_TEXT = """
ADD ALTER ANALYZE BEGIN CACHE CALL CASE CLEAR CLOSE COMMENT COMMIT CONVERT CREATE DECLARE DELETE
DESC DESCRIBE DFS DROP EXECUTE EXPLAIN EXPORT FETCH FOR FROM GENERATE GET GRANT IF IMPORT INSERT
ITERATE LEAVE LIST LOAD LOCK LOOP MAP MERGE MSCK OPEN OPTIMIZE REDUCE REFRESH REORG REPAIR REPEAT
REPLACE RESET RESTORE REVOKE ROLLBACK SELECT SET SHOW SIGNAL START SYNC TABLE TRUNCATE UNCACHE
UNLOCK UNSET UPDATE USE VACUUM VALUES WHILE WITH
"""
FIRST_WORDS = frozenset(_TEXT.split())


def validate_first_word(text: str) -> None:
    """Refuse a statement that begins with no word of SQL, with the nearest that is one."""
    first = Cursor(text).current
    if not first.word or first.word in FIRST_WORDS:
        return
    near = get_close_matches(first.word, sorted(FIRST_WORDS), n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise InvalidStatementError(
        f"No statement begins with {first.text}.{hint}", statement=text, position=first.start
    )
