"""How large and how deeply nested a statement may be, all in one place.

Every text passes the lexer (`sqltext.lexer`), which counts brackets, CASEs, signs and tokens as
it goes and refuses what is beyond these limits, with its place. Spark's parser with its default
stack gives up between 200 and 400 nested brackets, CASEs or calls, and between 800 and 1,600 signs.
"""

from __future__ import annotations

# Brackets of one kind, or CASEs, inside one another; signs and NOTs in a row.
MAX_DEPTH = 500
# Operators such as + and || in one expression; Spark takes minutes for long chains before it fails.
MAX_OPERATORS = 2_000
# Tokens of one text: an IN list of a million literals has two million.
MAX_TOKENS = 4_000_000
# Types inside one another: array<array<…>>.
MAX_TYPE_DEPTH = 100
# Queries and joins in brackets inside one another; deeper ones are left to Spark unoptimised.
MAX_FOLLOWED = 50
# Joins of one FROM clause, and of a statement; with more it is left to Spark unoptimised.
MAX_JOINS = 200
MAX_ALL_JOINS = 1_000
# Brackets around the parts of a condition; of deeper ones nothing is pushed down.
MAX_CONDITION_DEPTH = 200
# Tokens that a condition may take to read, besides a few times its own size.
CONDITION_TOKENS = 1_000_000
