"""Committing: isolation checks against what landed meanwhile, retries, clean-up."""
