"""The pages: each takes what was asked for and returns markup."""
