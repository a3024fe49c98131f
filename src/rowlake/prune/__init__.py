"""Whether a predicate can match: evaluated on statistics and partition values, never on rows.

Comes in: a predicate bound to a schema (`bind`) and tables of files or manifests. Goes out: masks
(`match`), inclusive (`may_match`: some row may match) or strict (`must_match`: every row does).
"""
