"""Inspect a table's health and run the maintenance that pays.

`survey` collects sizes, rows, partitions and the reach of delete files from metadata alone,
without opening a data file. `health` compares it with thresholds and names the command to run;
`costs` estimates what each step saves per read and costs once; `optimize` runs the steps that
pay, within a budget. `auto` runs `optimize` after writes, where table properties ask for it.
"""
