"""Choose the files that a read or a change must open, with their deletes, in a few large tasks.

    plan_files(view, predicate, storage) -> FilePlan    surviving files by spec, and a `DeleteIndex`
    bind(predicate, schema)                             names to field ids, literals to values
    may_match, must_match, manifests_may_match          inclusive and strict tests, vectorised
    scan_tasks(plan, context, slots=...)                splits large files, packs small ones

`answers` reads counts, minima and maxima of whole columns off the metadata, where they are exact.
"""
