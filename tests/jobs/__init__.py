"""Jobs as users write them: plain PySpark on tables without a catalog's name.

Each is run as a script and leaves its tables in the namespace `job_<its name>`.
"""
